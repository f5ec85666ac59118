package recording

import (
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A frame is what is on the screen for some time.
type frame struct {
	lines   [][]cell
	seconds float64
}

// The size of a character, in pixels of the picture.
const (
	charWidth  = 8.4
	lineHeight = 19
	margin     = 14
	titleBar   = 30
)

// draw returns frames as an SVG that shows one after the other, for ever, or only the
// last one to people who want no motion.
func draw(title string, cols, rows int, frames []frame) string {
	var (
		b      strings.Builder
		total  float64
		width  = float64(cols)*charWidth + 2*margin
		height = rows*lineHeight + titleBar + 2*margin
	)
	for _, f := range frames {
		total += f.seconds
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" role="img"><title>%s</title><style>`, width, height, escaped(title))
	b.WriteString(`text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d6deeb;white-space:pre}` +
		`.s1{font-weight:bold}.s2{fill:#8d99ad}.s4{text-decoration:underline}.s31,.s91{fill:#ff8a80}.s32,.s92{fill:#8fe388}.s33,.s93{fill:#f2d574}` +
		`.s34,.s94{fill:#8ab4ff}.s35,.s95{fill:#d7a6ff}.s36,.s96{fill:#7fdbe0}.s90{fill:#8d99ad}.f{visibility:hidden}`)
	at := 0.0
	for i, f := range frames {
		from, to := 100*at/total, 100*(at+f.seconds)/total
		fmt.Fprintf(&b, `@keyframes k%d{0%%{visibility:%s}%.3f%%{visibility:visible}%.3f%%,100%%{visibility:hidden}}`, i, map[bool]string{true: "visible", false: "hidden"}[i == 0], from, to)
		fmt.Fprintf(&b, `#f%d{animation:k%d %.1fs step-end infinite}`, i, i, total)
		at += f.seconds
	}
	fmt.Fprintf(&b, `@media(prefers-reduced-motion:reduce){.f{animation:none!important}#f%d{visibility:visible}}</style>`, len(frames)-1)
	fmt.Fprintf(&b, "\n"+`<rect width="%.0f" height="%d" rx="8" fill="#10151f"/>`, width, height)
	for i, colour := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="16" r="5" fill="%s"/>`, 18+i*18, colour)
	}
	b.WriteString("\n<defs>\n")
	ids := map[string]string{} // :: a line → its id
	for _, f := range frames {
		for _, l := range f.lines {
			text := drawLine(l)
			if _, ok := ids[text]; !ok && text != "" {
				ids[text] = fmt.Sprintf("l%d", len(ids))
				fmt.Fprintf(&b, "<g id=%q>%s</g>\n", ids[text], text)
			}
		}
	}
	b.WriteString("</defs>\n")
	for i, f := range frames {
		fmt.Fprintf(&b, `<g class="f" id="f%d">`, i)
		for row, l := range f.lines {
			if text := drawLine(l); text != "" {
				fmt.Fprintf(&b, `<use href="#%s" y="%d"/>`, ids[text], titleBar+margin+row*lineHeight)
			}
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// drawLine returns the texts of a line, one for each style, or "" for an empty line.
func drawLine(line []cell) string {
	var b strings.Builder
	for from := 0; from < len(line); {
		to := from
		var text strings.Builder
		for ; to < len(line) && line[to].style == line[from].style; to++ {
			text.WriteRune(line[to].char)
		}
		if strings.TrimSpace(text.String()) != "" {
			words := strings.TrimRight(text.String(), " ")
			class := ""
			if line[from].style != "" {
				class = fmt.Sprintf(" class=%q", line[from].style)
			}
			fmt.Fprintf(&b, `<text x="%.1f" textLength="%.1f"%s xml:space="preserve">%s</text>`, margin+float64(from)*charWidth,
				float64(utf8.RuneCountInString(words))*charWidth, class, escaped(words))
		}
		from = to
	}
	return b.String()
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // writing to a Builder does not fail
	return b.String()
}
