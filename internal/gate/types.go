package gate

import (
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Names of package call for package server, which has its own type named call. All
// other packages import package call itself.
type (
	Request = call.Request
	Run     = call.Run
	Caller  = call.Caller
	Pack    = call.Pack
	Kind    = call.Kind
	Trust   = call.Trust
	From    = call.From
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
	TrustUser = call.TrustUser
)

// Where calls come from.
const (
	OriginMachine = call.OriginMachine
	OriginClient  = call.OriginClient
)

// NewArguments returns arguments that were already read; see [call.NewArguments].
func NewArguments(tree *strictjson.Node) *call.Arguments { return call.NewArguments(tree) }
