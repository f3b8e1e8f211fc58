package facts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// depthMax bounds how deep a document nests.
const depthMax = 200

// decode reads the one document of a file, by the path's extension. The error begins with the
// path, and the line where that is known.
func decode(path string, content []byte) (any, error) {
	if filepath.Ext(path) == ".json" {
		document, line, err := decodeJSON(content)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, line, err)
		}
		return document, nil
	}
	document, err := decodeYAML(content)
	if err == nil {
		return document, nil
	}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		return nil, fmt.Errorf("%s:%s: no YAML: %s", path, m[1], m[2])
	}
	return nil, fmt.Errorf("%s: %w", path, err)
}

// yamlLine is how the YAML library says where something is wrong: what is no YAML, or the first
// value of several that have no Go type, such as a key that stands twice.
var yamlLine = regexp.MustCompile(`^yaml: (?:unmarshal errors:\n  )?line (\d+): ([^\n]*)`)

// decodeJSON refuses a key that stands twice, which encoding/json would let the last one win.
// Numbers are json.Number. line is where an error was met, from 1.
func decodeJSON(content []byte) (v any, line int, err error) {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	v, err = jsonValue(d, 0)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("more than one JSON value")
		}
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the JSON ends too early")
	} else {
		err = fmt.Errorf("no JSON: %w", err)
	}
	end := d.InputOffset()
	if wrong := (*json.SyntaxError)(nil); errors.As(err, &wrong) {
		end = wrong.Offset
	}
	return v, 1 + bytes.Count(content[:min(end, int64(len(content)))], []byte("\n")), err
}

func jsonValue(d *json.Decoder, depth int) (any, error) {
	if depth > depthMax {
		return nil, fmt.Errorf("it nests deeper than %d", depthMax)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := jsonValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	case json.Delim('{'):
		object := map[string]any{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name, _ := key.(string) // the decoder lets nothing else pass
			if _, twice := object[name]; twice {
				return nil, fmt.Errorf("the key %q stands twice", name)
			}
			if object[name], err = jsonValue(d, depth+1); err != nil {
				return nil, err
			}
		}
		_, err := d.Token()
		return object, err
	}
	return token, nil
}

// decodeYAML refuses further documents. The library refuses keys that stand twice.
func decodeYAML(content []byte) (any, error) {
	d := yaml.NewDecoder(bytes.NewReader(content))
	var document, next any
	switch err := d.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the file is empty")
	case err != nil:
		return nil, err
	}
	if err := d.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one YAML document")
	}
	return document, nil
}
