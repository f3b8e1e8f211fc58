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
	{name: "removals", pkg: "runtime/daemon", pattern: "^BenchmarkRemove$", time: "1x", rounds: 3,
		comparisons: []comparison{{"remove copies from a store that answers after 20 ms",
			metric{"Remove", "removals/s"}, "16 callers that do nothing but the same calls",
			metric{"Remove", "deletions/s"}, atLeast(removalTarget)}}},
	{name: "manifest", pkg: "objstore", pattern: "^BenchmarkPutFact$", time: "3x",
		comparisons: growth("PutFact", "publish one more segment, with its share of checkpoints")},
	{name: "records", pkg: "offsets", pattern: "^BenchmarkLongLog$", time: "500x", rounds: 3,
		comparisons: []comparison{
			records("10,000", "10000"), records("100,000", "100000"),
		}},
	{name: "decisions", pkg: "runtime/engine", pattern: "^BenchmarkLongLog$", time: "3x",
		comparisons: growth("LongLog", "the engine's part in one more copy")},
	{name: "policy", pkg: "policies/rego", pattern: "^BenchmarkGate$", time: "2s",
		comparisons: []comparison{{"an answer of the gate: guard, input, evaluation, reasons",
			metric{"Gate", "gate-ns/decision"}, "OPA's evaluation of the same prepared query, the " +
				"input ready", metric{"Gate", "opa-ns/decision"}, atMost(1.2)}}},
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
	{name: "plugins", pkg: "runtime/plugin", time: "100x", comparisons: plugins(),
		pattern: "^BenchmarkBatch$/^(native|c|go|rust)$|^BenchmarkBatch$/^(c|go)$/^guest-"},
	{name: "plugins-parallel", pkg: "runtime/plugin", pattern: "^BenchmarkParallel$/^(c|go)$",
		time: "200x", comparisons: []comparison{inParallel("C", "c"), inParallel("Go", "go")}},
	{name: "plugins-load", pkg: "runtime/plugin", pattern: "^BenchmarkLoad$/^go$/^cached$",
		time: "20x", rounds: 3, comparisons: []comparison{{what: "load a Go plugin from the cache",
			tierd: metric{"Load/go/cached", "min-ns/load"}, target: figureUpTo(0.05)}}},
	{name: "selecting", pkg: "runtime/engine", pattern: "^BenchmarkSelect$", time: "20x",
		comparisons: []comparison{{what: "the engine's part in a question about one segment of " +
			"10,000, and in its answer", tierd: metric{"Select", "ns/segment"}}}},
	{name: "steps", pkg: "runtime/engine", pattern: "^BenchmarkSteps$", time: "50x",
		comparisons: []comparison{{"steps of the engine in the life of logs, without policies",
			metric{"Steps/engine", "steps/s"}, "a map finds the log of each event",
			metric{"Steps/map", "steps/s"}, figureOf(1_000_000)}}},
	{name: "histories", pkg: "sim", pattern: "^BenchmarkHistory$", time: "100x", rounds: 3,
		comparisons: []comparison{{"a simulated history of tiersim", metric{"History", "ns/history"},
			"its policy evaluations alone", metric{"History", "evaluations-ns/history"}, atMost(2)}}},
	{name: "shrinking", pkg: "sim", pattern: "^BenchmarkShrink$", time: "3x", rounds: 3,
		comparisons: []comparison{{what: "shrink a failing history to its fewest steps",
			tierd: metric{"Shrink", "ns/op"}, target: figureUpTo(20)}}},
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

// plugins compares a batch of 10,000 segments through an example with the same loop in the host,
// and what its fuel costs with the module as its author built it.
func plugins() []comparison {
	native := metric{"Batch/native", "min-ns/segment"}
	var out []comparison
	for _, p := range []struct {
		words, name string
		most        float64
	}{{"C", "c", 4}, {"Rust", "rust", 4}, {"Go", "go", 10}} {
		out = append(out, comparison{"a segment of a batch of 10,000 through a plugin in " + p.words,
			metric{"Batch/" + p.name, "min-ns/segment"}, "the same loop in the host", native,
			atMost(p.most)})
	}
	for _, p := range []struct{ words, name string }{{"C", "c"}, {"Go", "go"}} {
		out = append(out, comparison{"the same in the plugin alone, counting its fuel, in " + p.words,
			metric{"Batch/" + p.name + "/guest-metered", "min-ns/segment"}, "not counting",
			metric{"Batch/" + p.name + "/guest-unmetered", "min-ns/segment"}, atMost(1.3)})
	}
	return out
}

// inParallel compares two workers on two cores with one.
func inParallel(words, name string) comparison {
	return comparison{"two workers at a time ask a plugin in " + words,
		metric{"Parallel/" + name + "/workers=2", "min-ns/segment"}, "one",
		metric{"Parallel/" + name + "/workers=1", "min-ns/segment"}, atMost(0.65)}
}
