package keyringstore

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxItem bounds a part, in bytes: the Credential Manager takes 2,560 and the Keychain
// about 2,900, and a JWT with its refresh token is often more. maxParts bounds an
// entry.
const (
	maxItem  = 2048
	maxParts = 128
)

// item is one entry in a ring. Its head is the item with the name itself; what does
// not fit in there stands in parts named name.slot.n, in the slot that the head does
// not use. Saving the head is what saves the entry.
type item struct {
	ring          ring
	service, name string
}

// head is the JSON of the head.
type head struct {
	// Value is the entry, when it fits.
	Value string `json:"value,omitempty"`
	// Slot, Parts and Sum are where the entry stands, and its SHA-256.
	Slot  string `json:"slot,omitempty"`
	Parts int    `json:"parts,omitempty"`
	Sum   string `json:"sum,omitempty"`
}

var errDamaged = errors.New("the entry is damaged: log out, and log in again")

func (i item) load() ([]byte, error) {
	h, err := i.head()
	if err != nil {
		return nil, err
	}
	if h.Slot == "" {
		return []byte(h.Value), nil
	}
	var b []byte
	for n := range h.Parts {
		part, err := i.ring.Get(i.service, i.part(h.Slot, n))
		if errors.Is(err, errNoItem) {
			return nil, errDamaged
		}
		if err != nil {
			return nil, err
		}
		b = append(b, part...)
	}
	if sum(b) != h.Sum {
		return nil, errDamaged
	}
	return b, nil
}

func (i item) head() (head, error) {
	text, err := i.ring.Get(i.service, i.name)
	if err != nil {
		return head{}, err
	}
	var h head
	if err := json.Unmarshal([]byte(text), &h); err != nil || h.Parts < 0 || h.Parts > maxParts || h.Slot == "" && h.Value == "" {
		return head{}, errDamaged
	}
	return h, nil
}

func (i item) save(value []byte) error {
	if len(value) == 0 || len(value) > maxItem*maxParts || !utf8.Valid(value) {
		return fmt.Errorf("these %d bytes are no entry of a keyring", len(value))
	}
	old, err := i.head()
	if err != nil && !errors.Is(err, errNoItem) && !errors.Is(err, errDamaged) {
		return err
	}
	slot := other(old.Slot)
	h, err := i.write(value, slot)
	if err == nil {
		err = i.setHead(h)
	}
	if err != nil {
		i.abandon(slot)
		return err
	}
	// The entry is saved: what is left of the one before can wait for the next save.
	_ = errors.Join(i.clear("a", h.kept("a")), i.clear("b", h.kept("b")))
	return nil
}

// abandon removes the parts of a save that failed, unless the head names them after all:
// a ring may fail when it has written. What is left waits for the next save.
func (i item) abandon(slot string) {
	h, err := i.head()
	if errors.Is(err, errNoItem) || err == nil && h.Slot != slot {
		_ = i.clear(slot, 0) // the ring fails already
	}
}

// write puts a value that is no item's into the parts of a slot.
func (i item) write(value []byte, slot string) (head, error) {
	if h := (head{Value: string(value)}); fits(h) {
		return h, nil
	}
	h := head{Slot: slot, Sum: sum(value)}
	for ; len(value) > 0; h.Parts++ {
		n := min(len(value), maxItem)
		if err := i.ring.Set(i.service, i.part(slot, h.Parts), string(value[:n])); err != nil {
			return head{}, err
		}
		value = value[n:]
	}
	return h, nil
}

func (i item) setHead(h head) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return i.ring.Set(i.service, i.name, string(text))
}

func fits(h head) bool {
	text, err := json.Marshal(h)
	return err == nil && len(text) <= maxItem
}

// kept is how many parts of a slot the entry has.
func (h head) kept(slot string) int {
	if h.Slot == slot {
		return h.Parts
	}
	return 0
}

// clear removes the parts of a slot from number n on: of the entry before, or of a
// save that did not come to its end. The last goes first, so that a clear that does
// not come to its end leaves no part that the next one would not find.
func (i item) clear(slot string, n int) error {
	end := n
	for ; end < maxParts; end++ {
		_, err := i.ring.Get(i.service, i.part(slot, end))
		if errors.Is(err, errNoItem) {
			break
		}
		if err != nil {
			return err
		}
	}
	for end--; end >= n; end-- {
		if err := i.ring.Delete(i.service, i.part(slot, end)); err != nil && !errors.Is(err, errNoItem) {
			return err
		}
	}
	return nil
}

func (i item) delete() error {
	err := i.ring.Delete(i.service, i.name)
	if errors.Is(err, errNoItem) {
		err = nil
	}
	return errors.Join(err, i.clear("a", 0), i.clear("b", 0))
}

func (i item) part(slot string, n int) string { return i.name + "." + slot + "." + strconv.Itoa(n) }

func other(slot string) string {
	if slot == "a" {
		return "b"
	}
	return "a"
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
