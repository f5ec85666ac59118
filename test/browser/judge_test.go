package browser_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// axe returns the script of axe-core, which checks accessibility. npm installs it once, at
// the version in package-lock.json.
var axe = sync.OnceValues(func() (string, error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".cache", "axe")
	cmd := exec.Command(filepath.Join(root, "scripts", "npm.sh"), "test/browser", dir)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("installing axe-core: %w\n%s", err, out)
	}
	script, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	return string(script), err
})

// violations returns what axe-core finds, once its script is loaded.
const violations = `axe.run(document, {resultTypes: ['violations']}).then((r) =>
	r.violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + v.help + ': ' + n.target.join(' ') + ': ' + n.failureSummary)))`

// judge checks that axe-core finds no violation on the current page, on a phone and on a
// wider screen, light and dark. If axe-core cannot be installed, TestAxe is skipped with the
// name "axe".
func (b *tab) judge(what string) {
	b.t.Helper()
	script, err := axe()
	if err != nil {
		b.t.Logf("%s is not judged: %v", what, err)
		return
	}
	b.do(chromedp.Evaluate[chromedp.Void](script + "; undefined"))
	for _, width := range []int64{375, 1200} {
		b.do(chromedp.EmulateViewport(width, 900))
		for _, scheme := range []string{"light", "dark"} {
			b.scheme(scheme)
			b.until(`!document.querySelector('.settling')`)
			if found := eval[[]string](b, violations); len(found) > 0 {
				b.t.Errorf("%s, %d pixels, %s: axe-core finds\n%s", what, width, scheme, strings.Join(found, "\n"))
			}
		}
	}
}

// axe-core is available, or this test is skipped; and it detects violations.
func TestAxe(t *testing.T) {
	t.Parallel()
	if _, err := axe(); err != nil {
		if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "axe") {
			t.Fatalf("axe: required by PACKS_MCP_REQUIRE, but %v", err)
		}
		t.Skipf("axe: %v", err)
	}
	_, open := openDesk(t, newQueue(), nil)
	b := newTab(t)
	b.do(chromedp.Navigate(open()))
	b.has("No call waits")
	b.judge("an empty page")
	script, _ := axe()
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById('count').append(document.createElement('button')); ` + script + "; undefined"))
	if got := eval[string](b, `axe.run(document).then((r) => r.violations.map((v) => v.id).join())`); !strings.Contains(got, "button-name") {
		t.Errorf("axe-core finds %q on a page with a button without a name: this test shows nothing", got)
	}
}
