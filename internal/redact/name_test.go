package redact

import "testing"

func TestSensitiveName(t *testing.T) {
	for _, name := range []string{"password", "db_password", "Passwd", "token", "access-token", "accessToken", "api_key", "apiKey", "X-API-Key", "client_secret", "private_key", "credentials", "Authorization", "pin", "pwd"} {
		if !SensitiveName(name) {
			t.Errorf("SensitiveName(%q) = false, want true", name)
		}
	}
	for _, name := range []string{"key", "max_tokens", "author", "path", "tokenizer", "spinner", "passage", ""} {
		if SensitiveName(name) {
			t.Errorf("SensitiveName(%q) = true, want false", name)
		}
	}
}
