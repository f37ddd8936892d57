#include "proxy/commands/redact.hpp"

#include "tests/support/base64.hpp"

#include <gtest/gtest.h>

namespace kubelane::commands {
namespace {

using test::base64;

// Assembled, so that nobody who searches this file for keys finds one.
const std::string label = std::string("PRIVATE ") + "KEY";
const std::string key_body =
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg0123456789abcdef\n"
    "ghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefgh\n";
const std::string pem =
    "-----BEGIN " + label + "-----\n" + key_body + "-----END " + label + "-----\n";

std::string wrapped(const std::string& text, std::size_t columns) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); at += columns)
    result += text.substr(at, columns) + "\n";
  return result;
}

TEST(Redact, APrivateKeyGoesAndWhatIsAroundItStays) {
  EXPECT_EQ(redact("before\n" + pem + "after\n"), "before\n[removed]\nafter\n");
  EXPECT_EQ(redact("a\n" + pem.substr(0, pem.size() - 40)), "a\n[removed]");
}

TEST(Redact, EveryKindOfPrivateKeyGoes) {
  for (const char* kind : {"RSA ", "EC ", "ENCRYPTED ", "OPENSSH "}) {
    const auto text =
        "-----BEGIN " + (kind + label) + "-----\nabc\n-----END " + (kind + label) + "-----";
    EXPECT_EQ(redact(text), "[removed]") << kind;
  }
}

TEST(Redact, ACertificateIsNoSecret) {
  const std::string text = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
  EXPECT_EQ(redact(text), text);
}

TEST(Redact, AKeyInBase64GoesHoweverAlignedAndWrapped) {
  for (std::size_t before = 0; before < 80; ++before)
    for (const std::size_t columns : {64UL, 76UL, 100'000UL}) {
      const auto encoded = wrapped(base64(std::string(before, 'x') + pem), columns);
      EXPECT_EQ(redact("log: " + encoded + "next line\n"), "log: [removed]\nnext line\n")
          << before << ' ' << columns;
    }
}

TEST(Redact, OtherBase64Stays) {
  const auto text = wrapped(base64(std::string(500, 'x')), 76) + "end\n";
  EXPECT_EQ(redact(text), text);
}

TEST(Redact, NamedSecretsLoseTheirValues) {
  EXPECT_EQ(redact("token: abc\nuser: x\n"), "token: [removed]\nuser: x\n");
  EXPECT_EQ(redact("{\"token\":\"a b\",\"n\":1}"), "{\"token\":[removed],\"n\":1}");
  EXPECT_EQ(redact("password=hunter2 next"), "password=[removed] next");
  EXPECT_EQ(redact("client-key-data: LS0tLS1"), "client-key-data: [removed]");
  EXPECT_EQ(redact("Authorization: Bearer abc.def"), "Authorization: [removed]");
  EXPECT_EQ(redact("Environment=A=b C=d"), "Environment=[removed]");
}

TEST(Redact, AnAuthorizationIsTheRestOfTheLine) {
  EXPECT_EQ(redact("Authorization: Basic dXNlcjpwYXNz\nnext"), "Authorization: [removed]\nnext");
  EXPECT_EQ(redact("authorization: token abc123"), "authorization: [removed]");
  EXPECT_EQ(redact("authorization:token abc123"), "authorization:[removed]");
  EXPECT_EQ(redact("Authorization=Digest a=\"b\", c=d"), "Authorization=[removed]");
  EXPECT_EQ(redact("{\"h\":\"Authorization: Basic abc d\",\"n\":1}"),
            "{\"h\":\"Authorization: [removed]\",\"n\":1}");
}

TEST(Redact, AValueAfterAColonMayHaveBlanks) {
  EXPECT_EQ(redact("password: correct horse battery\nuser: x"), "password: [removed]\nuser: x");
  EXPECT_EQ(redact("password = correct horse\n"), "password = [removed]\n");
  EXPECT_EQ(redact("password=hunter2,3;4 next"), "password=[removed] next");
  EXPECT_EQ(redact("{password: a b, user: x}"), "{password: [removed], user: x}");
  EXPECT_EQ(redact("{\"cause\":\"no token: a b\",\"n\":1}"),
            "{\"cause\":\"no token: [removed]\",\"n\":1}");
  EXPECT_EQ(redact("token=Bearer abc next"), "token=Bearer [removed] next");
}

TEST(Redact, AQuoteInsideQuotesDoesNotEndThem) {
  EXPECT_EQ(redact(R"(password: "ab\"cd" # old)"), "password: [removed] # old");
  EXPECT_EQ(redact(R"(password: "ab\\" # old)"), "password: [removed] # old");
  EXPECT_EQ(redact("password: 'it''s me' # old"), "password: [removed] # old");
  EXPECT_EQ(redact(R"({"a":"{\"token\":\"b c\\\"d\",\"n\":1}"})"),
            R"({"a":"{\"token\":[removed],\"n\":1}"})");
  EXPECT_EQ(redact("password=\"ab\"cd next"), "password=[removed] next");
}

TEST(Redact, AValueOfSeveralLinesGoesWhole) {
  EXPECT_EQ(redact("token: |\n  abc\n\n  def\nuser: x\n"), "token: [removed]\n\nuser: x\n");
  EXPECT_EQ(redact("- token: >-\n    abc\n  user: x\n"), "- token: [removed]\n  user: x\n");
  EXPECT_EQ(redact("# token: |\n#   abc\n# user: x\n"), "# token: [removed]\n# user: x\n");
  EXPECT_EQ(redact("  token:\n    abc\n  user: x\n"), "  token: [removed]\n  user: x\n");
  EXPECT_EQ(redact("password: \"a\n  b\"\nuser: x\n"), "password: [removed]\nuser: x\n");
}

TEST(Redact, SecretSettingsOfAUnitLoseTheirValues) {
  EXPECT_EQ(redact("  Environment=API_CRED=x\n"), "  Environment=[removed]\n");
  EXPECT_EQ(redact("# Environment = A=x\n"), "# Environment =[removed]\n");
  EXPECT_EQ(redact("Environment=A=1 \\\n  B=2 \\\n# C\n  D=3\nUser=x\n"),
            "Environment=[removed]\nUser=x\n");
  EXPECT_EQ(redact("SetCredential=x:abc\n"), "SetCredential=[removed]\n");
  EXPECT_EQ(redact("SetCredentialEncrypted=x: \\\n  k6iUCUh0RJCQyvL8 \\\n  k6iU\nUser=x\n"),
            "SetCredentialEncrypted=[removed]\nUser=x\n");
  EXPECT_EQ(redact("Environment=\nEnvironmentFile=-/etc/x\n"),
            "Environment=\nEnvironmentFile=-/etc/x\n");
}

TEST(Redact, ValuesOfOptionsGo) {
  EXPECT_EQ(redact("x --token abc123 --v 2"), "x --token [removed] --v 2");
  EXPECT_EQ(redact("x --bearer-token 'a b' y"), "x --bearer-token [removed] y");
  EXPECT_EQ(redact("[\"--token\",\"abc\",\"-v\"]"), "[\"--token\",[removed],\"-v\"]");
  EXPECT_EQ(redact("x --token \\\n  abc\nnext"), "x --token [removed]\nnext");
  EXPECT_EQ(redact("the token is old"), "the token is old");
}

TEST(Redact, PathsOfKeysStay) {
  const std::string text =
      "health:\n  tls: {client_key_file: /etc/kubelane/client.key, kubeconfig: /etc/k.conf}\n"
      "--token-auth-file=/etc/tokens.csv\n";
  EXPECT_EQ(redact(text), text);
}

TEST(Redact, TokensAndPasswordsAreKnownByTheirForm) {
  EXPECT_EQ(redact("got eyJhbGciOi.eyJzdWIi.c2lnbmF0dXJl here"), "got [removed] here");
  EXPECT_EQ(redact("join abcdef.0123456789abcdef now"), "join [removed] now");
  EXPECT_EQ(redact("https://me:secret@host/path"), "https://[removed]@host/path");
  EXPECT_EQ(redact("https://host/a@b"), "https://host/a@b");
}

TEST(Redact, OrdinaryTextStays) {
  const std::string text =
      "2026-01-01T00:00:00.000Z warn upstream dead upstream=cp2 from=ready cause=\"host silent\"\n"
      "kubelane_upstream_state{state=\"ready\",upstream=\"cp1\"} 1\n\n\tindented\n";
  EXPECT_EQ(redact(text), text);
  EXPECT_EQ(redact(""), "");
}

}  // namespace
}  // namespace kubelane::commands
