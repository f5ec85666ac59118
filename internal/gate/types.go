package gate

import (
	"encoding/json"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
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
