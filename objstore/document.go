package objstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/tierd/tierd/runtime/tier"
)

// documentVersion is the version of all JSON objects that this tierd writes.
const documentVersion = 1

// header begins every document.
type header struct {
	Version int    `json:"version"`
	Kind    string `json:"kind"`
}

// The kinds of documents.
const (
	kindOwner      = "owner"
	kindEntry      = "entry"
	kindCheckpoint = "checkpoint"
)

const (
	sealPrefix = `,"sha256":"`
	sealSuffix = `"}` + "\n"
	sealBytes  = len(sealPrefix) + 2*sha256.Size + len(sealSuffix)
)

// seal encodes v, a struct that begins with a header, and adds the checksum of all that precedes
// it as the last member.
func seal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return withSeal(bytes.TrimSuffix(b.Bytes(), []byte("}\n"))), nil
}

// withSeal appends the checksum and the closing brace to text, which it may overwrite behind its
// end.
func withSeal(text []byte) []byte {
	sum := sha256.Sum256(text)
	text = append(text, sealPrefix...)
	text = hex.AppendEncode(text, sum[:])
	return append(text, sealSuffix...)
}

// unseal checks that data is a sealed document of the kind, and decodes it into v. A document of a
// newer version is tier.ErrNewer, anything else that is wrong tier.ErrDamaged.
func unseal(data []byte, kind string, v any) error {
	text, sealErr := checkSeal(data)
	// What this tierd writes begins so; only something else needs a look at what it is.
	begin := fmt.Sprintf(`{"version":%d,"kind":"%s",`, documentVersion, kind)
	if sealErr != nil || !bytes.HasPrefix(text, []byte(begin)) {
		var h header
		if err := json.Unmarshal(data, &h); err == nil && h.Version > documentVersion {
			return fmt.Errorf("version %d of %q, newer than %d: %w",
				h.Version, h.Kind, documentVersion, tier.ErrNewer)
		} else if sealErr == nil {
			return fmt.Errorf("version %d of %q: want %d of %q: %w",
				h.Version, h.Kind, documentVersion, kind, tier.ErrDamaged)
		}
		return sealErr
	}
	if w, ok := v.(interface{ readVerbatim(text []byte) bool }); ok && w.readVerbatim(text) {
		return nil
	}
	return decode(text, v)
}

// decode reads what the checksum covers, without the brace behind it, whoever wrote it.
func decode(text []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(append(bytes.Clone(text), '}')))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", tier.ErrDamaged, err)
	}
	if dec.More() {
		return fmt.Errorf("more than one JSON value: %w", tier.ErrDamaged)
	}
	return nil
}

// checkSeal returns what the checksum of data covers.
func checkSeal(data []byte) (text []byte, err error) {
	if len(data) < sealBytes {
		return nil, fmt.Errorf("%d bytes, shorter than any document: %w", len(data), tier.ErrDamaged)
	}
	text, end := data[:len(data)-sealBytes], data[len(data)-sealBytes:]
	sum := sha256.Sum256(text)
	if string(end) != sealPrefix+hex.EncodeToString(sum[:])+sealSuffix {
		return nil, fmt.Errorf("does not end with the sha256 of what precedes it (%x): %w",
			sum, tier.ErrDamaged)
	}
	return text, nil
}
