package config

import "strings"

// Mistake is one thing wrong with the configuration.
type Mistake struct {
	// Key is the setting.
	Key string
	// Origin is where the value came from.
	Origin Origin
	// Problem says what is wrong, as the rest of a sentence that begins with the key.
	Problem string
	// Fix is what to do: a value to write, or words.
	Fix string
	// Value is set when Fix is the value to write.
	Value bool
}

// String is one line: what is wrong, where, and the line to write.
func (m Mistake) String() string {
	var b strings.Builder
	b.WriteString(m.Key)
	if m.Origin.Kind != "" {
		b.WriteString(" (" + m.Origin.String() + ")")
	}
	switch m.Key {
	case "config", "environment":
		b.WriteString(":")
	}
	b.WriteString(" " + m.Problem)
	if m.Fix != "" {
		b.WriteString("; " + m.fix())
	}
	return b.String()
}

// fix spells the value as it is written where the wrong one stands.
func (m Mistake) fix() string {
	if !m.Value {
		return m.Fix
	}
	switch m.Origin.Kind {
	case "environment":
		return "write: " + EnvPrefix + strings.ToUpper(m.Key) + "=" + m.Fix
	case "flag":
		return "write: --" + strings.ReplaceAll(m.Key, "_", "-") + " " + m.Fix
	}
	return "write: " + m.Key + ": " + m.Fix
}

// Mistakes is everything wrong with the configuration, as one error of one line each.
type Mistakes []Mistake

// Error returns one line a mistake.
func (l Mistakes) Error() string {
	lines := make([]string, len(l))
	for i, m := range l {
		lines[i] = m.String()
	}
	return strings.Join(lines, "\n")
}

// orNil returns nil as an error when nothing is wrong.
func (l Mistakes) orNil() error {
	if len(l) == 0 {
		return nil
	}
	return l
}
