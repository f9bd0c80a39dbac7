# Reads what go test -bench printed, run after run: order[1..names] are the
# benchmarks, n[name] the runs of each, and wall, cpu and quiet (nanoseconds), bytes
# and allocs what they took.
/^Benchmark/ {
	name = $1; sub(/^Benchmark/, "", name); sub(/-[0-9]+$/, "", name)
	if (!(name in n)) order[++names] = name
	k = ++n[name]
	for (i = 3; i < NF; i += 2) {
		if ($(i+1) == "ns/op") wall[name, k] = $i
		if ($(i+1) == "median-ns/op") quiet[name, k] = $i
		if ($(i+1) == "cpu-ns/op") cpu[name, k] = $i
		if ($(i+1) == "B/op") bytes[name] = $i
		if ($(i+1) == "allocs/op") allocs[name] = $i
	}
}
# sorted returns the median of values[name, 1..k], which s[1..k] are in order.
function sorted(values, name,   i, j, t) {
	k = n[name]
	for (i = 1; i <= k; i++) s[i] = values[name, i] + 0
	for (i = 2; i <= k; i++) for (j = i; j > 1 && s[j-1] > s[j]; j--) { t = s[j]; s[j] = s[j-1]; s[j-1] = t }
	return s[int((k + 1) / 2)]
}
