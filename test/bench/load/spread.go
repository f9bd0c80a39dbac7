package main

import (
	"fmt"
	"slices"
)

// spread writes the median, the least and the greatest of values.
func spread(values []float64, format, unit string) string {
	s := slices.Clone(values)
	slices.Sort(s)
	if unit != "" {
		unit = " " + unit
	}
	n := len(s)
	median := (s[(n-1)/2] + s[n/2]) / 2
	return fmt.Sprintf(format+"%s ("+format+" to "+format+")", median, unit, s[0], s[n-1])
}
