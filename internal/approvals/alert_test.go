package approvals

import (
	"errors"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// alerted is a desk that reports each alert on a channel.
func alerted(t *testing.T, quiet time.Duration) (d *Desk, q *calls, got chan string) {
	t.Helper()
	got = make(chan string, 10)
	d, q = testDesk(t, func(o *Options) {
		o.quiet = quiet
		o.OpenBrowser = func(string) error { got <- "page"; return nil }
		o.Notify = func(title, text string) error { got <- title + ". " + text; return nil }
	})
	return d, q, got
}

func wantAlert(t *testing.T, got chan string, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case g := <-got:
			if g != w {
				t.Errorf("alert = %q, want %q", g, w)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("there was no alert %q", w)
		}
	}
}

// wantNoAlert ends the desk and wants nothing to have been shown.
func wantNoAlert(t *testing.T, d *Desk, got chan string) {
	t.Helper()
	if err := d.Close(); err != nil { // waits for an alert that is being made
		t.Fatal(err)
	}
	select {
	case g := <-got:
		t.Errorf("alert = %q, want none", g)
	default:
	}
}

const oneWaits = "A call waits for your answer. Answer on the approval page in your browser, or run: packs-mcp approvals"

func TestAlert(t *testing.T) {
	d, q, got := alerted(t, time.Hour)
	d.Alert()
	wantAlert(t, got, "page", oneWaits)
	// Within the hour, there is no other.
	two := testCall
	two.Code = "AAAA-AAAA"
	q.set(testCall, two)
	d.Alert()
	d.Alert()
	wantNoAlert(t, d, got)
	d.Alert() // closed
}

// Once it has been quiet for long enough, the page is opened again.
func TestAlertAgain(t *testing.T) {
	d, q, got := alerted(t, time.Millisecond)
	d.Alert()
	wantAlert(t, got, "page", oneWaits)
	two := testCall
	two.Code = "AAAA-AAAA"
	kept := testCall
	kept.Code, kept.Answered = "BBBB-BBBB", queue.Once
	q.set(testCall, two, kept)
	d.Alert()
	wantAlert(t, got, "page", "2 calls wait for your answer. Answer on the approval page in your browser, or run: packs-mcp approvals")

	// No window opens beside a page that is open, and nothing is said about calls that were answered.
	page, _ := listen(t, d, asPage(d, "GET /events", ""))
	if event, _, err := page.next(); event != "hello" || err != nil {
		t.Fatalf("next() = %s, %v", event, err)
	}
	d.Alert()
	wantAlert(t, got, "2 calls wait for your answer. Answer on the approval page in your browser, or run: packs-mcp approvals")
	q.set(kept)
	d.makeAlert()
	wantNoAlert(t, d, got)
}

// Somebody who answers calls sees the next one without a notification.
func TestNoNotificationWhileAnswering(t *testing.T) {
	d, _, got := alerted(t, time.Hour)
	if res, body := asPage(d, "POST /decide", decideOnce).send(t, d); res.StatusCode != 200 {
		t.Fatalf("decide = %d %s", res.StatusCode, body)
	}
	d.Alert()
	wantAlert(t, got, "page")
	wantNoAlert(t, d, got)
}

// Strangers' requests are no answers.
func TestStrangersDoNotSilenceAlerts(t *testing.T) {
	d, _, got := alerted(t, time.Hour)
	asPage(d, "POST /decide", decideOnce).with("X-Packs-Key", "x").send(t, d)
	asTerminal(d, "POST /control/decide", decideOnce).with("Authorization", "Bearer x").send(t, d)
	asPage(d, "GET /events", "").with("X-Packs-Key", "x").send(t, d)
	d.Alert()
	wantAlert(t, got, "page", oneWaits)
}

func TestAlertWithoutAPage(t *testing.T) {
	got := make(chan string, 10)
	d, _ := testDesk(t, func(o *Options) {
		o.Page = false
		o.OpenBrowser = func(string) error { got <- "page"; return nil }
		o.Notify = func(title, text string) error { got <- title + ". " + text; return errors.New("no bus") }
	})
	d.Alert()
	wantAlert(t, got, "A call waits for your answer. In a terminal, run: packs-mcp approvals")
	wantNoAlert(t, d, got)
}
