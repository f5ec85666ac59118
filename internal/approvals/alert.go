package approvals

import (
	"fmt"
	"time"
)

// Alert tells the person that a call waits which its client does not show. It
// opens the page unless one is open, and has the system show a notification
// unless the person has just answered a call here. It returns at once.
//
// There is at most one alert a minute. One that comes too soon is made when the
// minute is over, if a call still waits then.
func (d *Desk) Alert() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.alert != nil {
		return
	}
	d.wg.Add(1)
	d.alert = time.AfterFunc(max(0, d.o.quiet-time.Since(d.alerted)), func() {
		defer d.wg.Done()
		d.makeAlert()
	})
}

func (d *Desk) makeAlert() {
	d.mu.Lock()
	d.alert = nil // before looking: a call that comes after the look gets an alert of its own
	d.mu.Unlock()
	waiting := 0
	for _, p := range d.o.Calls.Pending() {
		if p.Answered == "" {
			waiting++
		}
	}
	if waiting == 0 {
		return
	}
	d.mu.Lock()
	d.alerted = time.Now()
	open := d.o.Page && len(d.pages) == 0 && !d.closed
	notify := d.o.Notify != nil && time.Since(d.answered) >= d.o.quiet && !d.closed
	d.mu.Unlock()

	if open {
		if err := d.OpenPage(); err != nil {
			d.o.Logger.Warn("a call waits for you, and the approval page could not be opened", "err", err,
				"hint", "in a terminal, run: packs-mcp approvals")
		}
	}
	if notify {
		// Only words of ours: a notification is no place to judge those of a pack,
		// and others may see the screen.
		title := "A call waits for your answer"
		if waiting > 1 {
			title = fmt.Sprintf("%d calls wait for your answer", waiting)
		}
		text := "In a terminal, run: packs-mcp approvals"
		if d.o.Page {
			text = "Answer on the approval page in your browser, or run: packs-mcp approvals"
		}
		if err := d.o.Notify(title, text); err != nil {
			d.o.Logger.Debug("the system was not told that a call waits", "err", err)
		}
	}
}
