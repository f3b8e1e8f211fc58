// Package objstore keeps segments and manifests in an object store, over a thanos Bucket.
//
// # Keys
//
// Everything that one tierd writes lies under the id of its ledger, so that two tierds never touch
// each other's objects, and each log has a directory of its own:
//
//	<ledger>/owner.json                                                whose ledger it is
//	<ledger>/probe/<nonce>                                             made and deleted by Probe
//	<ledger>/logs/<table>/<name>/<epoch>/<base>-<attempt>/<file>       one file of a segment
//	<ledger>/logs/<table>/<name>/manifest/<position>-<attempt>.json    one fact
//	<ledger>/logs/<table>/<name>/manifest/L<level>-<block>.json        a block of facts
//
//	<ledger>     1 to 64 of A-Z a-z 0-9 _ -
//	<table>      escaped, also its slashes: one step
//	<name>       escaped
//	<epoch>      the tier epoch, 8 decimal digits or more
//	<base>       the segment's base offset, 20 decimal digits
//	<attempt>    32 lower-case hexadecimal digits
//	<file>       the name in the source's directory, as it is
//	<position>   in the manifest, 16 lower-case hexadecimal digits
//	<level>      1 or 2
//	<block>      16 lower-case hexadecimal digits
//
// Escaped text keeps A-Z a-z 0-9 _ - and dots that are neither first nor last; every other byte
// becomes % and two upper-case hexadecimal digits. So it is reversible, and different texts stay
// different: the tables "a/b" and "a" share no directory, and neither does "a%2Fb". It is safe for
// S3, GCS, Azure (which drops dots at an end) and file systems, but for those that take upper and
// lower case for the same. A step of more than 255 bytes, the longest name of common file systems,
// is refused rather than hashed, since a key must lead back to its log; CheckLog and CheckName tell
// so when the configuration is read. The greatest key has 902 bytes; S3, GCS and Azure take 1024,
// of which the configured prefix takes some.
//
// Objects are immutable: no key is ever used for two contents. Only owner.json is replaced, by
// Adopt. The attempt in a key makes sure that an upload that was given up and ends late overwrites
// and revives nothing. An entry or a checkpoint that the store lost or altered is written again,
// and says the same; identities of local files, which prove nothing without the ledger, may be
// those of now.
//
// # Documents
//
// Objects other than a segment's files are JSON, in UTF-8, of one form:
//
//	{"version":1,"kind":"entry", ... ,"sha256":"<64 hexadecimal digits>"}\n
//	|<--------- covered ------------>|<------------ 78 bytes ------------->|
//
// Version and kind come first. The last member is the SHA-256 of all bytes before its comma, so
// that it is checked over the bytes as they are, and before they are interpreted. The kinds:
//
//	owner        ledger, host, data_dir, created
//	entry        ledger, log, attempt, fact
//	checkpoint   ledger, log, level, block, facts
//
// The log is "table/name". A fact is a tier.Fact in its JSON form, with exactly one of add, hole,
// start, clip and open. Times are nanoseconds since the Unix epoch. Unknown members are refused, as
// is a document of another ledger, log, position, attempt or block than its key says: a copied
// object proves nothing. A newer version is tier.ErrNewer, whatever else it holds. An entry has at
// most 1 MiB, a checkpoint 64 MiB, and nothing larger is read into memory.
//
// # Manifests
//
// The manifest of a log is a set of facts that commute. Each is published as an entry. A checkpoint
// of level l and block k repeats all facts at the positions [k*64^l, (k+1)*64^l) as one object; it
// is written when all of these are settled, so that it is final: an entry that it stands for but
// does not contain is a late one of an abandoned attempt. The bytes of a checkpoint follow from
// its facts alone, so that writing it again changes nothing. With two levels, each fact is written
// three times in all, and a manifest of n segments is read in about n/4096 + 126 requests.
//
// # Outcomes
//
// An error of an upload never says that nothing was stored. One past its deadline wraps
// context.DeadlineExceeded (or context.Canceled), and its outcome is unknown: nothing is deleted,
// nothing assumed, and the caller resolves it by looking, with StatFile, VerifyFile or Fact. Some
// of thanos' clients ignore the context (OSS, Swift); such a call comes back when it likes, and
// until then holds the slot of the worker that made it.
//
// # Decorators
//
// A Store takes its bucket as it is. What it needs around a real one, from the outside in:
//
//	retry.Wrap(deadline.Wrap(limit.Wrap(client, limiter), ...), ...)
//
// so that each attempt has its own deadline, which includes the waiting for the rate limit.
package objstore
