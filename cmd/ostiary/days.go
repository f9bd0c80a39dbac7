package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// day is what people count secrets and tokens in.
const day = 24 * time.Hour

// days is the value of a flag that takes a duration, written as Go writes it or
// in days: 48h, 14d.
type days time.Duration

// daysVar defines such a flag; the value of d is its default.
func daysVar(fs *pflag.FlagSet, d *time.Duration, name, usage string) {
	fs.Var((*days)(d), name, usage)
}

// Set parses 48h, 14d.
func (d *days) Set(s string) error {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		count, err := strconv.ParseUint(n, 10, 16)
		if err != nil {
			return fmt.Errorf("write e.g. 48h or 14d")
		}
		*d = days(time.Duration(count) * day)
		return nil
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("write e.g. 48h or 14d")
	}
	*d = days(v)
	return nil
}

// String writes whole days as days; "" is none, so that help shows no default.
func (d *days) String() string {
	switch v := time.Duration(*d); {
	case v == 0:
		return ""
	case v%day == 0:
		return strconv.Itoa(int(v/day)) + "d"
	default:
		return v.String()
	}
}

// Type names the value in the help.
func (d *days) Type() string { return "duration" }
