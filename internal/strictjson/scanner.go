package strictjson

import (
	"bytes"
	"slices"
)

// scanner walks over JSON text (RFC 8259) and accepts what encoding/json does.
type scanner struct {
	b      []byte
	i      int
	bounds Bounds
}

// peek returns the byte at hand, or 0 at the end, which no token begins with.
func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

// take steps over c and the space after it.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.i++
	s.space()
	return true
}

// end makes sure that nothing follows.
func (s *scanner) end() error {
	if s.space(); s.i != len(s.b) {
		return ErrTrailing
	}
	return nil
}

// object reads the outermost object.
func (s *scanner) object(list []Member) ([]Member, error) {
	s.space()
	if !s.take('{') {
		return nil, ErrForm
	}
	if s.take('}') {
		return list, nil
	}
	for {
		m, err := s.member()
		if err != nil {
			return nil, err
		}
		if len(list) < fewMembers && Object(list).Has(string(m.Name)) {
			return nil, ErrRepeated
		}
		if list, err = s.keep(list, m); err != nil {
			return nil, err
		}
		if s.take('}') {
			return list, checkRepeated(list)
		}
		if !s.take(',') {
			return nil, ErrForm
		}
	}
}

// fewMembers is how many names are compared with one another as they come, which
// allocates nothing. Of more, that would take time with the square of their number.
const fewMembers = 16

// checkRepeated looks for a name that an object of more than fewMembers has twice.
func checkRepeated(list []Member) error {
	if len(list) <= fewMembers {
		return nil
	}
	names := make([][]byte, len(list))
	for i, m := range list {
		names[i] = m.Name
	}
	slices.SortFunc(names, bytes.Compare)
	for i := 1; i < len(names); i++ {
		if bytes.Equal(names[i-1], names[i]) {
			return ErrRepeated
		}
	}
	return nil
}

// array reads the outermost array.
func (s *scanner) array(list []Member) ([]Member, error) {
	s.space()
	if !s.take('[') {
		return nil, ErrForm
	}
	if s.take(']') {
		return list, nil
	}
	for {
		m, err := s.element()
		if err != nil {
			return nil, err
		}
		if list, err = s.keep(list, m); err != nil {
			return nil, err
		}
		if s.take(']') {
			return list, nil
		}
		if !s.take(',') {
			return nil, ErrForm
		}
	}
}

func (s *scanner) keep(list []Member, m Member) ([]Member, error) {
	if len(list) == s.bounds.Members {
		return nil, ErrBounds
	}
	return append(list, m), nil
}

func (s *scanner) member() (Member, error) {
	from := s.i
	if err := s.text(); err != nil {
		return Member{}, err
	}
	name, plain := plainString(s.b[from:s.i])
	if !plain {
		decoded, ok := String(s.b[from:s.i])
		if !ok {
			return Member{}, ErrForm
		}
		name = []byte(decoded)
	}
	if s.space(); !s.take(':') {
		return Member{}, ErrForm
	}
	m, err := s.element()
	m.Name = name
	return m, err
}

func (s *scanner) element() (Member, error) {
	from := s.i
	if err := s.value(0); err != nil {
		return Member{}, err
	}
	m := Member{Value: s.b[from:s.i], At: from}
	s.space()
	return m, nil
}

// value steps over any value.
func (s *scanner) value(depth int) error {
	switch c := s.peek(); {
	case c == '"':
		return s.text()
	case c == '{':
		return s.nested('}', depth, true)
	case c == '[':
		return s.nested(']', depth, false)
	case c == '-' || isDigit(c):
		return s.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(s.b[s.i:], []byte(word)) {
			s.i += len(word)
			return nil
		}
	}
	return ErrForm
}

// nested steps over an object or array within the outermost object. Names in it
// may repeat: nothing reads them.
func (s *scanner) nested(end byte, depth int, named bool) error {
	if depth == s.bounds.Depth {
		return ErrBounds
	}
	s.i++
	if s.space(); s.peek() == end {
		s.i++
		return nil
	}
	for {
		if named {
			if err := s.text(); err != nil {
				return err
			}
			if s.space(); !s.take(':') {
				return ErrForm
			}
		}
		if err := s.value(depth + 1); err != nil {
			return err
		}
		s.space()
		if s.peek() == end {
			s.i++
			return nil
		}
		if !s.take(',') {
			return ErrForm
		}
	}
}

// text steps over a string.
func (s *scanner) text() error {
	if s.peek() != '"' {
		return ErrForm
	}
	for s.i++; ; s.i++ {
		s.i += plainLength(s.b[s.i:])
		switch s.peek() {
		case '"':
			s.i++
			return nil
		case '\\':
			if !s.escape() {
				return ErrForm
			}
		default: // a control character, or the end
			return ErrForm
		}
	}
}

// plainLength returns how many bytes at the beginning of b mean themselves in a
// string. Long texts are read here.
func plainLength(b []byte) int {
	for i, c := range b {
		if c < 0x20 || c == '"' || c == '\\' {
			return i
		}
	}
	return len(b)
}

// escape steps onto the last byte of an escape sequence.
func (s *scanner) escape() bool {
	s.i++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			s.i++
			if c := s.peek() | 0x20; !isDigit(s.peek()) && (c < 'a' || c > 'f') {
				return false
			}
		}
		return true
	}
	return false
}

// number steps over a number: no leading zero, no bare point or exponent.
func (s *scanner) number() error {
	if s.peek() == '-' {
		s.i++
	}
	if s.peek() == '0' {
		s.i++
	} else if !s.digits() {
		return ErrForm
	}
	if s.peek() == '.' {
		s.i++
		if !s.digits() {
			return ErrForm
		}
	}
	if s.peek()|0x20 == 'e' {
		s.i++
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if !s.digits() {
			return ErrForm
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	from := s.i
	for isDigit(s.peek()) {
		s.i++
	}
	return s.i > from
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// plainString returns the inside of a JSON string without escapes.
func plainString(v []byte) ([]byte, bool) {
	if len(v) < 2 || v[0] != '"' || bytes.IndexByte(v, '\\') >= 0 {
		return nil, false
	}
	return v[1 : len(v)-1], true
}
