package doctor

import (
	"fmt"
	"io"
	"strings"
)

// TextOptions says how a report is written for people.
type TextOptions struct {
	// Color marks states by colour.
	Color bool
	// All writes what is fine and what was skipped too, not only their number.
	All bool
	// Width is where texts are broken, in columns, 60 at least. Default, and most: 100.
	Width int
}

// Colours of states (ECMA-48 SGR).
var colors = map[State]string{OK: "\x1b[32m", Warn: "\x1b[33m", Broken: "\x1b[1;31m", Skipped: "\x1b[2m"}

const plain = "\x1b[0m"

// WriteText writes the report for people: what is wrong in full, hop by hop.
func (r *Report) WriteText(w io.Writer, o TextOptions) error {
	t := &textWriter{w: w, o: o}
	t.printf("%s  %s\n", map[Kind]string{KindServer: "MCP server", KindIssuer: "issuer    "}[r.Kind], r.URL)
	if r.Kind == KindServer && r.Issuer != "" {
		t.printf("issuer      %s\n", r.Issuer)
	}
	if r.As != "" {
		t.printf("as          %s\n", r.As)
		t.replay(r.Replay)
	}
	t.findings(r.Findings)
	t.printf("\n%s\n", r.summary())
	for _, left := range r.Left {
		t.printf("left there: %s\n", left)
	}
	return t.err
}

// summary is the last line.
func (r *Report) summary() string {
	return fmt.Sprintf("%d ok, %s, %d broken, %d skipped; %d requests",
		r.Counts[OK], count(r.Counts[Warn], "warning"), r.Counts[Broken], r.Counts[Skipped], r.Requests)
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprint(n, " ", noun)
}

// textWriter keeps the first error of many writes.
type textWriter struct {
	w   io.Writer
	o   TextOptions
	err error
}

func (t *textWriter) printf(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format, args...)
	}
}

// mark is a state, in its colour, as wide as the widest.
func (t *textWriter) mark(s State) string {
	text := fmt.Sprintf("%-7s", s)
	if !t.o.Color {
		return text
	}
	return colors[s] + text + plain
}

func (t *textWriter) replay(steps []Step) {
	t.printf("\n")
	for i, s := range steps {
		t.printf("%3d  %s %s\n", i+1, t.mark(s.State), s.Text)
	}
}

// findings writes hop by hop; a hop without faults is a line, unless all is wanted.
func (t *textWriter) findings(all []Finding) {
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Hop == all[0].Hop {
			n++
		}
		t.hop(all[:n])
		all = all[n:]
	}
}

func (t *textWriter) hop(findings []Finding) {
	counts := map[State]int{}
	for _, f := range findings {
		counts[f.State]++
	}
	if counts[Skipped] == len(findings) && !t.o.All {
		return
	}
	t.printf("\n%s", findings[0].Hop)
	if !t.o.All {
		t.printf(": %s", hopSummary(counts))
	}
	t.printf("\n")
	for _, f := range findings {
		if t.o.All || f.State == Warn || f.State == Broken {
			t.finding(f)
		}
	}
}

func hopSummary(counts map[State]int) string {
	var parts []string
	for _, s := range []State{Broken, Warn, OK, Skipped} {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprint(counts[s], " ", s))
		}
	}
	return strings.Join(parts, ", ")
}

func (t *textWriter) finding(f Finding) {
	elsewhere := ""
	if f.Elsewhere && (f.State == Broken || f.State == Warn) {
		elsewhere = " (not for this client)"
	}
	t.printf("  %s %s  [%s]%s\n", t.mark(f.State), f.Title, f.ID, elsewhere)
	t.line("why", f.Why)
	if f.State == OK {
		t.line("", f.Came)
		return
	}
	if f.Elsewhere {
		return
	}
	t.line("asked", f.Asked)
	t.line("came", f.Came)
	for _, c := range f.Clients {
		t.line("breaks", c.Name+": "+c.How)
	}
	t.line("change", f.Fix)
	t.line("see", f.Reference)
}

// Columns where texts are broken: beyond the one nobody likes to read, and below the
// other the labels leave no room.
const widest, narrowest = 100, 60

// line writes a labelled text, broken at words.
func (t *textWriter) line(label, text string) {
	if text == "" {
		return
	}
	const indent = 19
	limit := widest
	if t.o.Width > 0 {
		limit = max(narrowest, min(t.o.Width, widest))
	}
	line, width := "", 0
	for _, word := range strings.Fields(text) {
		if width > 0 && indent+width+1+len(word) > limit {
			t.printf("          %-8s %s\n", label, line)
			label, line, width = "", "", 0
		}
		if width > 0 {
			line, width = line+" ", width+1
		}
		line, width = line+word, width+len(word)
	}
	t.printf("          %-8s %s\n", label, line)
}
