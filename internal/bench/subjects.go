package main

// flat is how much more something may cost where there is ten or a hundred times as much of what it
// must not depend on: the trees become deeper, the caches colder.
const flat = 1.5

// subjects are the parts of the table that benchmarks beside the code give.
var subjects = []*subject{
	{name: "scan", pkg: "runtime/logdir", pattern: "^BenchmarkScan$", time: "3x", rounds: 1,
		comparisons: []comparison{
			{"first scan of 100,000 plain segments in 1,000 logs", metric{"Scan/plain/first", "ns/op"},
				"listing and stat alone", metric{"Scan/plain/stat", "ns/op"}, figureUpTo(2)},
			{"the same again, nothing changed", metric{"Scan/plain/unchanged", "ns/op"},
				"listing and stat alone", metric{"Scan/plain/stat", "ns/op"}, figureUpTo(2)},
			{"first scan of 100,000 Kafka segments of 3 files each in 1,000 logs",
				metric{"Scan/kafka/first", "ns/op"},
				"listing and stat alone", metric{"Scan/kafka/stat", "ns/op"}, figureUpTo(2)},
			{"the same again, nothing changed", metric{"Scan/kafka/unchanged", "ns/op"},
				"listing and stat alone", metric{"Scan/kafka/stat", "ns/op"}, figureUpTo(2)},
		}},
	{name: "ledger", pkg: "offsets", pattern: "^BenchmarkAppend$/^callers=(1|100|1000|5000)$",
		time: "1s", comparisons: []comparison{
			advances("100", nil), advances("1000", atLeast(50)), advances("5000", nil),
			{"records in each commit, with 1000 callers",
				metric{"Append/callers=1000", "records/commit"}, "one caller",
				metric{"Append/callers=1", "records/commit"}, nil},
		}},
	{name: "start", pkg: "offsets", pattern: "^BenchmarkRestore$", time: "3x", rounds: 1,
		comparisons: []comparison{{what: "start with a ledger of 1,000,000 copies in 10,000 logs: " +
			"check every page and entry, restore", tierd: metric{"Restore", "start-s"}}}},
	{name: "pass", pkg: "runtime/engine", time: "100x",
		pattern:     "^BenchmarkIdlePass$/^logs=10000$/^segments=[12]000000$",
		comparisons: passes("IdlePass", "a pass in which nothing is due")},
	{name: "reload", pkg: "runtime/engine", pattern: "^BenchmarkReconfigure$", time: "20x",
		comparisons: passes("Reconfigure", "a look at every log anew, as after a reload")},
	{name: "tracked", pkg: "runtime/engine", pattern: "^BenchmarkMemory$", time: "3x", rounds: 1,
		comparisons: []comparison{{what: "memory of a tracked segment, local and copied",
			tierd: metric{"Memory", "bytes/segment"}, target: figureUpTo(250)}}},
	{name: "manifest", pkg: "objstore", pattern: "^BenchmarkPutFact$", time: "3x",
		comparisons: growth("PutFact", "publish one more segment, with its share of checkpoints")},
	{name: "records", pkg: "offsets", pattern: "^BenchmarkLongLog$", time: "500x", rounds: 3,
		comparisons: []comparison{
			records("10,000", "10000"), records("100,000", "100000"),
		}},
	{name: "decisions", pkg: "runtime/engine", pattern: "^BenchmarkLongLog$", time: "3x",
		comparisons: growth("LongLog", "the engine's part in one more copy")},
	{name: "policy", pkg: "policies/rego", pattern: "^Benchmark(Decide|OPA)$", time: "1s",
		comparisons: []comparison{{"a decision of the policies: input, evaluation, reasons",
			metric{"Decide", "ns/op"}, "OPA's evaluation of the same prepared query",
			metric{"OPA", "ns/op"}, atMost(1.2)}}},
	{name: "holds", pkg: "policies/rego", pattern: "^BenchmarkHolds$", time: "1s",
		comparisons: []comparison{{"a decision where 10,000 holds are looked up by key",
			metric{"Holds/holds=10000", "ns/op"}, "10 holds", metric{"Holds/holds=10", "ns/op"},
			atMost(1.2)}}},
	{name: "denied", pkg: "runtime/engine", pattern: "^BenchmarkDenied$", time: "3x", rounds: 3,
		comparisons: []comparison{
			{what: "a pass over 100,000 logs, each with a denied candidate whose inputs did not change",
				tierd: metric{"Denied/unchanged", "ns/op"}, target: figureUpTo(0.5)},
			{what: "questions to the policies for each of them, where the inputs of all changed",
				tierd: metric{"Denied/changed", "questions/log"}, target: figureUpTo(1)},
		}},
	{name: "tables", pkg: "runtime/config", pattern: "^BenchmarkLoad$", time: "3x", rounds: 3,
		comparisons: []comparison{
			{what: "load a configuration with 1,000 entries of tables",
				tierd: metric{"Load/tables=1000", "ns/op"}, target: figureUpTo(1)},
			{"with 10,000", metric{"Load/tables=10000", "ns/op"}, "1,000",
				metric{"Load/tables=1000", "ns/op"}, atMost(10 * flat)},
		}},
}

func advances(callers string, t *target) comparison {
	return comparison{callers + " callers at a time append to the ledger",
		metric{"Append/callers=" + callers, "records/s"}, "one, with a commit each",
		metric{"Append/callers=1", "records/s"}, t}
}

// passes compares a pass over twice as many segments with one that has to be quick by itself.
func passes(bench, what string) []comparison {
	one := metric{bench + "/logs=10000/segments=1000000", "ns/op"}
	two := metric{bench + "/logs=10000/segments=2000000", "ns/op"}
	return []comparison{
		{what: what + ", over 1,000,000 tracked segments in 10,000 logs", tierd: one,
			target: figureUpTo(0.5)},
		{what + ", over 2,000,000", two, "1,000,000", one, atMost(flat)},
	}
}

// growth compares the cost of one more segment of a log.
func growth(bench, what string) []comparison {
	small := metric{bench + "/segments=1000", "ns/segment"}
	var out []comparison
	for _, large := range []struct{ words, number string }{
		{"10,000", "10000"}, {"100,000", "100000"},
	} {
		out = append(out, comparison{what + ", in a log of " + large.words,
			metric{bench + "/segments=" + large.number, "ns/segment"}, "of 1,000", small,
			atMost(flat)})
	}
	return out
}

// records compares the ledger's part of the same.
func records(words, number string) comparison {
	return comparison{"record one more copy in the ledger, as 4 workers do, in a log of " + words,
		metric{"LongLog", "ns/segment-of-" + number}, "of 1,000",
		metric{"LongLog", "ns/segment-of-1000"}, atMost(flat)}
}
