package browser_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/packs-mcp/packs-mcp/test/logbuf"
)

// judgesVar names the folder that scripts/cards.sh installs the MCP Inspector into,
// and nodeVar the Node that runs it.
const (
	judgesVar = "PACKS_MCP_JUDGES"
	nodeVar   = "PACKS_MCP_NODE"
)

// An inspected is a server as the Inspector's configuration names it.
type inspected struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Era     string            `json:"protocolEra"`
}

// The MCP Inspector shows the card, and a person answers it there: instead of its form for a
// question, and beside the result of a tool, in both eras of the protocol.
func TestInspectorCards(t *testing.T) {
	judges := os.Getenv(judgesVar)
	if judges == "" {
		t.Skipf("cards: %s is not set; make cards installs the Inspector and runs this", judgesVar)
	}
	chromium.start(t)
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("", "packs-mcp-inspector-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The servers are the Inspector's children, and end shortly after it.
		end := time.Now().Add(patience)
		for err := os.RemoveAll(root); err != nil; err = os.RemoveAll(root) {
			if time.Now().After(end) {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	if root, err = filepath.EvalSymlinks(root); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"triage", "survey"} {
		pack := filepath.Join(root, "packs", name)
		text := strings.ReplaceAll(skillText, "triage", name)
		if err := errors.Join(os.MkdirAll(pack, 0o755), os.WriteFile(filepath.Join(pack, "SKILL.md"), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	servers := make(map[string]inspected)
	home := func(name string) string { return filepath.Join(root, name) }
	for _, era := range []string{"legacy", "modern"} {
		for _, channel := range []string{"elicitation", "app"} {
			name := era + "-" + channel
			servers[name] = inspected{"stdio", bin, []string{"serve", "--packs", filepath.Join(root, "packs")}, map[string]string{
				"HOME": root, "PACKS_MCP_HOME": home(name), "PACKS_MCP_APPROVAL_CHANNELS": channel,
			}, era}
		}
	}
	address := startInspector(t, judges, root, servers)
	for name := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTab(t)
			b.evil.Store(true) // it is not our page, so the browser may complain about it
			i := &inspectorPage{tab: b}
			b.do(chromedp.Navigate(address))
			i.connect(name)
			var want []string
			if strings.HasSuffix(name, "-elicitation") {
				i.asksInPlaceOfForm()
				want = []string{"open once elicitation+app", "open deny elicitation+app"}
			} else {
				i.asksBesideResult()
				// Recorded when it was answered, and when the call was repeated.
				want = []string{"open pending ", "open pending ", "open once app", "open deny app", "open once app", "open deny app"}
			}
			if got := decisions(t, bin, root, home(name)); !slices.Equal(got, want) {
				t.Errorf("the log has %q, want %q", got, want)
			}
		})
	}
}

// startInspector starts the Inspector's page for these servers and returns its address.
func startInspector(t *testing.T, judges, root string, servers map[string]inspected) string {
	t.Helper()
	list, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "servers.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Getenv(nodeVar), filepath.Join(judges, "node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js"), "--web", "--config", file)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CLIENT_PORT=" + port, "MCP_SANDBOX_PORT=0", "MCP_AUTO_OPEN_ENABLED=false",
		"MCP_STORAGE_DIR=" + filepath.Join(root, "inspector"), "MCP_INSPECTOR_SECRET_STORE=memory",
	}
	log := new(logbuf.Buffer)
	cmd.Stderr = log
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // its status after an interrupt does not matter
	})
	found := make(chan string, 1)
	go func() {
		address := regexp.MustCompile(`http://127\.0\.0\.1:` + port + `\S*TOKEN=\S+`)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if a := address.FindString(lines.Text()); a != "" {
				select {
				case found <- a:
				default:
				}
			}
		}
	}()
	select {
	case a := <-found:
		return a
	case <-time.After(patience):
		t.Fatalf("the Inspector did not start:\n%s", log)
		return ""
	}
}

// decisions returns the log's decisions that were asked about.
func decisions(t *testing.T, bin, root, home string) []string {
	t.Helper()
	cmd := exec.Command(bin, "audit", "show", "--json")
	cmd.Env = []string{"HOME=" + root, "PACKS_MCP_HOME=" + home}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("audit show: %v", err)
	}
	var all []string
	for line := range strings.Lines(string(out)) {
		var e struct{ Event, Kind, Decision, Channel string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("audit show printed %q: %v", line, err)
		}
		if e.Event == "decision" && e.Kind != "list" {
			all = append(all, fmt.Sprint(e.Kind, " ", e.Decision, " ", e.Channel))
		}
	}
	return all
}

// An inspectorPage is the Inspector's page in a tab.
type inspectorPage struct{ *tab }

// until waits until an expression is true on the page. It polls less often than a test of
// our own page, since this page is large.
func (i *inspectorPage) until(expression string) {
	i.t.Helper()
	end := time.Now().Add(patience)
	for !eval[bool](i.tab, "Boolean("+expression+")") {
		if time.Now().After(end) {
			i.t.Fatalf("in vain waited for %s\nthe page: %s", expression, i.look())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// shows waits until a person can read the text.
func (i *inspectorPage) shows(text string) {
	i.t.Helper()
	i.until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// clicking returns an expression that clicks the first element of a kind whose text contains
// part, and is true if there is one.
func clicking(kind, part string) string {
	return fmt.Sprintf(`(() => {
		const found = [...document.querySelectorAll(%q)].find((n) => n.innerText.includes(%q) && !n.disabled && n.getBoundingClientRect().width > 0);
		if (found) found.click();
		return found;
	})()`, kind, part)
}

func (i *inspectorPage) click(kind, part string) {
	i.t.Helper()
	i.until(clicking(kind, part))
}

// when clicks until an expression is true, since a click while the page changes is lost.
func (i *inspectorPage) when(expression, kind, part string) {
	i.t.Helper()
	i.until(fmt.Sprintf(`(() => {
		if (%s) return true;
		if (performance.now() < (window.again || 0)) return false;
		window.again = performance.now() + 1000;
		%s;
		return false;
	})()`, expression, clicking(kind, part)))
}

func (i *inspectorPage) connect(server string) {
	i.t.Helper()
	i.until(fmt.Sprintf(`(() => {
		let n = [...document.querySelectorAll('h1, h2, h3, h4, p, span')].find((n) => n.textContent.trim() === %q);
		while (n && !n.querySelector('input[role="switch"]')) n = n.parentElement;
		if (n) n.querySelector('input[role="switch"]').click();
		return n;
	})()`, server))
	i.shows("Connected")
}

// opensPack calls open_docs for a pack. The Inspector shows a tool's results until another
// tool is chosen.
func (i *inspectorPage) opensPack(pack string) {
	i.t.Helper()
	const field = `[...document.querySelectorAll('input')].find((n) => n.labels && n.labels[0] && n.labels[0].innerText.includes('pack_id'))`
	i.click("label", "Tools")
	i.when(`!`+field+` && document.body.innerText.includes('next_cursor')`, "button", "capability_packs_list")
	i.when(field+` && !document.body.innerText.includes('next_cursor')`, "button", "capability_packs_open_docs")
	i.until(fmt.Sprintf(`(() => { const n = %s; n.id = 'the-pack'; return true; })()`, field))
	i.do(chromedp.SendKeys("#the-pack", pack))
	i.click("button", "Execute")
}

const opensTriage = "Open the documents of pack triage?"

func (i *inspectorPage) asksInPlaceOfForm() {
	i.t.Helper()
	i.opensPack("triage")
	i.cardHas(opensTriage)
	i.cardHas("This chat: using this pack")
	i.cardPress("once")
	i.shows("# Triage")
	i.opensPack("triage")
	i.cardHas(opensTriage)
	i.cardPress("deny")
	i.shows("the person chose to deny")
}

func (i *inspectorPage) asksBesideResult() {
	i.t.Helper()
	for _, pack := range []string{"triage", "survey"} {
		i.opensPack(pack)
		i.shows("Call capability_packs_approvals now")
	}
	i.click("label", "Apps")
	i.when(`document.body.innerText.includes('Open App') || document.querySelector('iframe')`, "button", "Show what waits for approval")
	i.when(`document.querySelector('iframe')`, "button", "Open App")
	i.cardHas(opensTriage)
	i.cardHas("Open the documents of pack survey?")
	if got := cardEval[string](i.tab, `[...document.querySelectorAll('.answers button')].map((n) => n.innerText).join(', ')`); got != "Open once, Deny, Open once, Deny" {
		i.t.Errorf("the card offers %q, want once and deny alone", got)
	}
	i.cardPress("once")
	i.cardHas("You allowed it.")
	i.cardPress("deny")
	i.cardHas("You denied it.")
	i.opensPack("triage")
	i.shows("# Triage")
	i.opensPack("survey")
	i.shows("the person denied it at")
}
