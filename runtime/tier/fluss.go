package tier

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// A Fluss bucket is a log. Its table is "database.table", its name the number of the bucket, in a
// partitioned table behind the partition's name and a dash: "shop.orders/0",
// "shop.visits/2024-01-0". Neither databases nor tables have a dot in their names, and bucket
// numbers no dash.
//
// Table and partition have an id beside their name, another one each time that they are made. The
// two are the log's incarnation, and part of its directory's path:
//
//	{database}/{table}-{table id}/log-{bucket}
//	{database}/{table}-{table id}/{partition}-p{partition id}/log-{bucket}
//
// Source: FlussPaths of Apache Fluss.

// FlussIDs are the ids that are the incarnation of a Fluss bucket.
type FlussIDs struct {
	Table     int64
	Partition int64 // -1 in a table without partitions
}

// Incarnation is the text of the ids: "7", or "7/3" with a partition. No Kafka topic id looks so.
func (i FlussIDs) Incarnation() string {
	if i.Partition < 0 {
		return strconv.FormatInt(i.Table, 10)
	}
	return strconv.FormatInt(i.Table, 10) + "/" + strconv.FormatInt(i.Partition, 10)
}

// ParseFlussIDs reads the incarnation of a Fluss bucket; false if it is none.
func ParseFlussIDs(incarnation string) (FlussIDs, bool) {
	table, partition, partitioned := strings.Cut(incarnation, "/")
	i := FlussIDs{Partition: -1}
	ok := false
	if i.Table, ok = flussNumber(table); !ok {
		return FlussIDs{}, false
	}
	if partitioned {
		if i.Partition, ok = flussNumber(partition); !ok {
			return FlussIDs{}, false
		}
	}
	return i, true
}

// flussNumber reads an id or a bucket number as Fluss writes it.
func flussNumber(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == s
}

// FlussBucket is what the path of a bucket's directory says.
type FlussBucket struct {
	Database, Table string
	Partition       string // "" in a table without partitions
	Bucket          int32
}

// FlussBucketOf reads the id of a log as that of a bucket; false if it is none.
func FlussBucketOf(id LogID) (b FlussBucket, ok bool) {
	if b.Database, b.Table, ok = strings.Cut(id.Table, "."); !ok {
		return FlussBucket{}, false
	}
	number := id.Name
	if i := strings.LastIndexByte(id.Name, '-'); i >= 0 {
		b.Partition, number = id.Name[:i], id.Name[i+1:]
		ok = b.Partition != ""
	}
	n, isNumber := flussNumber(number)
	b.Bucket = int32(n)
	return b, ok && isNumber && n == int64(b.Bucket) && !strings.Contains(b.Table, ".") &&
		b.Database != "" && b.Table != ""
}

// LogID is the id of the bucket's log.
func (b FlussBucket) LogID() LogID {
	name := strconv.FormatInt(int64(b.Bucket), 10)
	if b.Partition != "" {
		name = b.Partition + "-" + name
	}
	return LogID{Table: b.Database + "." + b.Table, Name: name}
}

// Dir is the directory of the bucket with the ids, below the tablet server's data directory.
func (b FlussBucket) Dir(i FlussIDs) string {
	dir := path.Join(b.Database, fmt.Sprintf("%s-%d", b.Table, i.Table))
	if b.Partition != "" {
		dir = path.Join(dir, fmt.Sprintf("%s-p%d", b.Partition, i.Partition))
	}
	return path.Join(dir, fmt.Sprintf("log-%d", b.Bucket))
}

// FlussNamed splits the name of a directory into what it names and its number, which stands behind
// the mark: "orders-7" with "-", "2024-01-01-p3" with "-p", "log-0" with "log-".
func FlussNamed(dir, mark string) (name string, number int64, ok bool) {
	i := strings.LastIndex(dir, mark)
	if i < 0 {
		return "", 0, false
	}
	number, ok = flussNumber(dir[i+len(mark):])
	return dir[:i], number, ok
}
