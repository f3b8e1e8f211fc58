package tier

// Owner is what the running program that a log belongs to says of the log now: the Kafka cluster
// beside a source.
type Owner struct {
	Cluster       string      // its id
	Incarnation   string      // of the log: the topic's id
	Node          int32       // the node that leads the log, and that was asked
	LeaderEpoch   LeaderEpoch // that it leads in
	Start         Offset      // where the log begins there
	HighWatermark Offset      // exclusive: what every replica has that must
	// Refusal is why records of the log cannot, or must not, be deleted there; "" if nothing is
	// known against it.
	Refusal string
	// Ends are where the epochs that were asked for end, in the order of the question.
	Ends []EpochEnd
}

// EpochEnd is where an epoch ends for the node that leads. A node that does not know the epoch that
// was asked for gives an older one, which is how it says so.
type EpochEnd struct {
	Asked, Epoch LeaderEpoch
	End          Offset // exclusive
}
