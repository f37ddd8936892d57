#include "etcd/url.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kubelane::etcd {
namespace {

using testing::HasSubstr;

TEST(EtcdUrl, IsReadAndWrittenInOneForm) {
  const auto form = [](const char* text) { return to_string(*parse_url(text)); };
  EXPECT_EQ(form("https://10.0.0.1:2379"), "https://10.0.0.1:2379");
  EXPECT_EQ(form("https://10.0.0.1"), "https://10.0.0.1:2379");
  EXPECT_EQ(form("http://Etcd1.Example:2379/"), "http://etcd1.example:2379");
  EXPECT_EQ(form("https://[fd00::1]:2379"), "https://[fd00::1]:2379");
}

TEST(EtcdUrl, WhatIsNoneSaysHowItIsWritten) {
  EXPECT_EQ(parse_url("10.0.0.1:2379").error(),
            "`10.0.0.1:2379` is no endpoint: write https://10.0.0.1:2379, or http:// if that "
            "member serves without TLS");
  EXPECT_THAT(parse_url("").error(), HasSubstr("write https://HOST:2379"));
  EXPECT_THAT(parse_url("unix://x").error(), HasSubstr("write https://HOST:2379"));
  EXPECT_THAT(parse_url("https://10.0.0.1:2379/v3").error(), HasSubstr("it ends with the port"));
  EXPECT_THAT(parse_url("https://10.0.0.1:99999").error(), HasSubstr("write https://HOST:PORT"));
  EXPECT_THAT(parse_url("https://").error(), HasSubstr("write https://HOST:PORT"));
}

}  // namespace
}  // namespace kubelane::etcd
