package gate

import (
	"encoding/json"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// What a call is; package call explains each.
type (
	Request   = call.Request
	Run       = call.Run
	Caller    = call.Caller
	Pack      = call.Pack
	Kind      = call.Kind
	Trust     = call.Trust
	Origin    = call.Origin
	Arguments = call.Arguments
	Granted   = call.Granted
	Missing   = call.Missing
	Field     = call.Field
	File      = call.File
	Fact      = call.Fact
)

// The kinds of calls.
const (
	KindList   = call.KindList
	KindOpen   = call.KindOpen
	KindRead   = call.KindRead
	KindEnable = call.KindEnable
	KindRun    = call.KindRun
	KindExec   = call.KindExec
	KindAttach = call.KindAttach
	KindDetach = call.KindDetach
)

// Where packs come from.
const (
	TrustBundled   = call.TrustBundled
	TrustUser      = call.TrustUser
	TrustUntrusted = call.TrustUntrusted
)

// Where calls come from.
const (
	OriginNetwork = call.OriginNetwork
	OriginMachine = call.OriginMachine
	OriginClient  = call.OriginClient
)

// ParseArguments decodes the arguments of a call; see [call.ParseArguments].
func ParseArguments(raw json.RawMessage) *Arguments { return call.ParseArguments(raw) }

// StandIn is what a request has in the place of a value that the person is to fill
// in; see [call.StandIn].
func StandIn(field string) string { return call.StandIn(field) }

// What a person decides; package queue explains each.
type (
	Decision    = queue.Decision
	Choice      = queue.Choice
	Verdict     = queue.Verdict
	Pending     = queue.Pending
	Past        = queue.Past
	CodeError   = queue.CodeError
	CodeProblem = queue.CodeProblem
)

const (
	Deny   = queue.Deny
	Once   = queue.Once
	Chat   = queue.Chat
	Always = queue.Always
)

const (
	ChannelElicitation = queue.ChannelElicitation
	ChannelPage        = queue.ChannelPage
	ChannelTerminal    = queue.ChannelTerminal
	ChannelGrant       = queue.ChannelGrant
	ChannelRule        = queue.ChannelRule
	ChannelPolicy      = queue.ChannelPolicy
	ChannelPrompt      = queue.ChannelPrompt
)

const (
	CodeUnknown   = queue.CodeUnknown
	CodeAnswered  = queue.CodeAnswered
	CodeExpired   = queue.CodeExpired
	CodeWithdrawn = queue.CodeWithdrawn
	CodeGone      = queue.CodeGone
	CodeInvalid   = queue.CodeInvalid
)

// ParseDecision returns a decision by its word; see [queue.ParseDecision].
func ParseDecision(word string) (Decision, bool) { return queue.ParseDecision(word) }
