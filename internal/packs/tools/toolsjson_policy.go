package tools

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/cachename"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// ReviewAll is the value of a policy's review.
const ReviewAll = "all"

func (p *parser) policy(n *node) Policy {
	policy := Policy{
		ReadOnly:  n.isTrue("read_only") || p.toolPack && n.get("read_only") == nil,
		AlwaysAsk: n.isTrue("confirm_before_run"),
		Review:    n.str("review") == ReviewAll,
		Network:   NetworkNone,
	}
	if at := n.get("cache"); at != nil && at.kind == kindText {
		if policy.Cache = at.text; !cachename.Valid(at.text) {
			p.report(diag.Error, CodeCacheName, at, fmt.Sprintf("the name of a cache is %+q", clip(at.text)), "write "+cachename.Want)
		}
	}
	requires := n.get("requires_network")
	if requires != nil && requires.truth {
		policy.Network = NetworkFull
	}
	if network := n.str("network"); network != "" {
		policy.Network = Network(network)
		if requires != nil && requires.truth != (policy.Network != NetworkNone) {
			p.report(diag.Error, CodePolicyConflict, n.get("network"), fmt.Sprintf("network is %q, and requires_network says otherwise", network), "keep network")
		}
	}
	if secs := n.get("timeout_secs"); secs != nil {
		policy.Timeout = p.timeout(secs)
	}
	if codes := n.get("allowed_exit_codes"); codes != nil {
		for _, c := range codes.items {
			policy.AllowedExitCodes = append(policy.AllowedExitCodes, integer(c))
		}
		slices.Sort(policy.AllowedExitCodes)
		policy.AllowedExitCodes = slices.Compact(policy.AllowedExitCodes)
	}
	return policy
}

// timeout reads a number of seconds. Only tool packs can ask for more than
// there is, and get what there is.
func (p *parser) timeout(n *node) time.Duration {
	const longest = int(maxTimeout / time.Second)
	secs, err := strconv.Atoi(shortNumber(n.text))
	if err != nil || secs > longest {
		secs = longest
		p.report(diag.Warning, CodeTimeoutLong, n, fmt.Sprintf("timeout_secs is %s, and a tool gets at most %d", clip(n.text), longest), fmt.Sprintf("write %d or less", longest))
	}
	return time.Duration(secs) * time.Second
}

// integer reads a number that the shape says is a small integer; it may be
// written 6e1.
func integer(n *node) int {
	i, err := strconv.Atoi(shortNumber(n.text))
	if err != nil {
		return 0
	}
	return i
}

func (p *parser) output(n *node) Output {
	if n == nil {
		return Output{Speak: p.toolPack}
	}
	o := Output{
		Format:       n.str("format"),
		ExtractField: n.str("extract_field"),
		Template:     n.str("template"),
		Speak:        n.isTrue("speak") || p.toolPack && n.get("speak") == nil,
		Merged:       n.isTrue("merged"),
	}
	if limit := n.get("max_chars"); limit != nil {
		o.MaxChars = integer(limit)
	}
	if o.Template != "" {
		at := n.get("template")
		a, ok := p.template(at)
		for _, piece := range a.pieces {
			if ok && piece.form != literal && (piece.name != outputName || piece.form == spread || piece.form == option) {
				p.report(diag.Error, CodePlaceholderUnknown, at, fmt.Sprintf("the template has %s, and only {{output}} stands for something", piece), "write {{output}}, or {{{{ for a literal {{")
			}
		}
	}
	return o
}
