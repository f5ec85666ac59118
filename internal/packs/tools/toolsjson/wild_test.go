package toolsjson_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolsjson"
	"github.com/packs-mcp/packs-mcp/test/tooltest"
)

// wildVerdicts has the verdict on each real file: "runs", "declared only", "not a
// tool list", or the code of an error, with the reason.
var wildVerdicts = map[string]string{
	"Aethis-ai/aethis-skills/tools.json":                                                        `tools-not-a-tool-list: not a list of tools: "tools" is an object whose "decide" is not a tool: it has no description, no command and no schema`,
	"openclaw/skills/skills/abgohel/meow-finder/data/tools.json":                                `tools-not-a-tool-list: not a list of tools: nothing in it has a command or a schema`,
	"AgentWorkers/skills/skills/colin-megan/alimail/manifest.json":                              `declared only: 1, search_alimail_user(name: string): it declares no command`,
	"AgentWorkers/skills/skills/barisoezcan1905/deepseek/skill.json":                            `tools-not-a-tool-list: not a list of tools: entry 1 is a string, not an object`,
	"openclaw/skills/skills/mariovallereyes/luma-event-manager/skill.json":                      `declared only: 13, luma_host_events(status?: string): it declares no command`,
	"AgentWorkers/skills/skills/dylanport/whistle-rpc/tools.json":                               `declared only: 4, solana_rpc(): it declares no command, and "url" is not read`,
	"AgentWorkers/skills/skills/nishant-clawit/openclaw-web-search-mcp/mcp.json":                `declared only: 10, search(): it declares no command`,
	"AgentWorkers/skills/skills/wbic16/sq-memory/skill.json":                                    `declared only: 4, remember(coordinate: string, text: string): it declares no command`,
	"AgentWorkers/skills/skills/haresh-sai06/haresh-product-search/skill.json":                  `declared only: 1, search_products(query: string): it declares no command`,
	"AgentWorkers/skills/skills/franciscoandsam/youtube-voice-summarizer-elevenlabs/skill.json": `declared only: 3, summarize_video(url: string, length?: string = "short", voice?: string = "podcast"): it declares no command, and "endpoint" is not read`,
	"AgentWorkers/skills/skills/josephrp/autonomous/adapters/anthropic/tools.json":              `declared only: 7, run_prediction(symbol: string, horizon?: integer = 30): it declares no command`,
	"AgentWorkers/skills/skills/hlouognem/prawmpt/tools.json":                                   `declared only: 3, get_match(matchId: string): it declares no command, and "http" is not read`,
	"AgentWorkers/skills/skills/agimodel/medium/skill.json":                                     `json-syntax: nothing in it`, // not JSON, so the collection has none of it
	"AgentWorkers/skills/skills/bluepointdigital/vector-memory/skills/vector-memory/skill.json": `declared only: 4, memory_search(): its command is a string`,
	"AgentWorkers/skills/skills/homeofe/openclaw-homeassistant/openclaw.plugin.json":            `declared only: 34, ha_status(): it declares no command`,
	"AgentWorkers/skills/skills/magiesky/team-collaboration/skill.json":                         `declared only: 2, auth_register(username?: string, password?: string, nickname?: string, role?: string): it declares no command`,
	"AgentWorkers/skills/skills/renggap/clawgator-superpowers/openclaw.plugin.json":             `declared only: 9, brainstorm(): it declares no command`,
	"AgentWorkers/skills/skills/aichiafranco/router-nimimore/skill.json":                        `declared only: 3, router.select(): its command is a string`,
	"AgentWorkers/skills/skills/pendzoncymisio/synapse/skill.json":                              `declared only: 6, create_memory_shard(source_db: string, tags?: string[], display_name: string): it declares no command, and "handler" is not read`,
	"AgentWorkers/skills/skills/cheenu1092-oss/clawdscan/skill.json":                            `declared only: 8, clawdscan_scan(json_output?: string): its command is a string`,
	"AgentWorkers/skills/skills/phips0812/31third-safe-rebalancer-simple/skill.json":            `declared only: 2, rebalance_now(): it declares no command, and "handler" is not read`,
	"AgentWorkers/skills/skills/zomgirprogrammer/searxng-web/skill.json":                        `declared only: 1, searxng_search(query: string, count?: integer = 5): it declares no command, and "runner" is not read`,
	"AgentWorkers/skills/skills/ypw757/bocha-skill/scripts/tool.json":                           `declared only: 1, bocha_web_search(query: string, count?: number = 10, freshness?: string = "noLimit"): its command is a string`,
	"AgentWorkers/skills/skills/elodyzen/email-sender/tools.json":                               `declared only: 1, send_email(to: string, subject: string, body: string, attachment_path?: string): it declares no command`,
	"AgentWorkers/skills/skills/esojourn/okx-trader/skill.json":                                 `declared only: 3, okx_report(): its command is a string`,
	"hyperifyio/goagent/tools.json":                                                             `runs: 28, get_time(timezone: string, tz?: string)`,
}

// Real files that declare tools seldom say how to run them. Only tools with a list of
// arguments may ever run.
func TestWildFiles(t *testing.T) {
	var data struct {
		Samples []struct {
			Path, Shape string
			Content     json.RawMessage
		}
	}
	if err := json.Unmarshal(tooltest.Shared(t, "data/tool-manifests.json"), &data); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, s := range data.Samples {
		seen[s.Path] = true
		set, found := toolsjson.Parse(s.Path, s.Content, tools.Limits{})
		if (set == nil) != diag.HasErrors(found) {
			t.Errorf("ParseToolsJSON of %s = %v with %v", s.Path, set, found)
		}
		if got, want := verdict(set, found), wildVerdicts[s.Path]; got != want {
			t.Errorf("%s (%s)\n  is   %s\n  want %s\n%v", s.Path, s.Shape, got, want, found)
		}
		if set == nil {
			continue
		}
		for _, tool := range set.Tools {
			argv := strings.Contains(s.Shape, "command:list")
			if (tool.Command != nil) != argv || (tool.DeclaredOnly == "") != argv {
				t.Errorf("ParseToolsJSON of %s: command of %s = %v, declared only because %q; the file gives arguments: %v", s.Path, tool.Name, tool.Command, tool.DeclaredOnly, argv)
			}
		}
	}
	for path := range wildVerdicts {
		if !seen[path] {
			t.Errorf("there is no %s any more", path)
		}
	}
}

// verdict sums up a file: the kind and number of its tools, the first one's
// signature, and why they do not run.
func verdict(set *tools.Set, found []diag.Diagnostic) string {
	if set == nil {
		return found[0].Code + ": " + found[0].Message
	}
	if len(set.Tools) == 0 {
		return "no tools"
	}
	first := set.Tools[0]
	what := "runs"
	var reasons []string
	for _, tool := range set.Tools {
		if tool.Command == nil {
			what = "declared only"
			if !slices.Contains(reasons, tool.DeclaredOnly) {
				reasons = append(reasons, tool.DeclaredOnly)
			}
		}
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %d, %s: %s", what, len(set.Tools), first.Signature(), strings.Join(reasons, "; ")), ": ")
}
