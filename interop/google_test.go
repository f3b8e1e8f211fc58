package interop_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// googleAccount starts a server of tokens, and returns what makes the JSON of a service account:
// one that gets tokens, or one that is refused.
func googleAccount(t *testing.T) func(credentials) string {
	t.Helper()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/wrong" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_grant",`+
				`"error_description":"Invalid JWT Signature."}`)
			return
		}
		_, _ = io.WriteString(w, `{"access_token":"t","token_type":"Bearer","expires_in":3600}`)
	}))
	t.Cleanup(tokens.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY",
		Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return func(c credentials) string {
		end := "/token"
		if c.wrong {
			end = "/wrong"
		}
		text, err := json.Marshal(map[string]string{"type": "service_account",
			"project_id": "interop", "private_key_id": "1", "private_key": string(private),
			"client_email": "tierd@interop.iam.gserviceaccount.com", "client_id": "1",
			"token_uri": tokens.URL + end})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// googleKeys lists the bucket by its HTTP interface alone: the client library finds an emulator by
// the environment, which the tests share.
func googleKeys(t *testing.T, address string) []string {
	t.Helper()
	var keys []string
	for page := ""; ; {
		var list struct {
			Items []struct {
				Name string `json:"name"`
			} `json:"items"`
			NextPageToken string `json:"nextPageToken"`
		}
		answer := get(t, "http://"+address+"/storage/v1/b/archive/o?pageToken="+page)
		if err := json.Unmarshal(answer, &list); err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			keys = append(keys, o.Name)
		}
		if page = list.NextPageToken; page == "" {
			return keys
		}
	}
}

// googleObject is where the content of an object is read.
func googleObject(address, key string) string {
	return "http://" + address + "/storage/v1/b/archive/o/" + url.PathEscape(key) + "?alt=media"
}

func get(t *testing.T, url string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", resp.Status, data)
	}
	if err != nil {
		t.Fatalf("GET %s: %v", url, err)
	}
	return data
}
