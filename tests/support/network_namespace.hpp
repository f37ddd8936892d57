#pragma once

#include <functional>
#include <memory>
#include <string>

namespace kubelane::test {

/// Two hosts of one network, each a network namespace named after this process, gone with this
/// object: 10.99.0.1, where the test is (`here`), and 10.99.0.2, the other.
class network_pair {
 public:
  /// Nothing if it is not permitted here; `why` says why.
  static std::unique_ptr<network_pair> create(std::string& why);
  ~network_pair();
  network_pair(const network_pair&) = delete;
  network_pair& operator=(const network_pair&) = delete;

  /// Runs `what` with this thread in the other namespace: sockets made there belong there.
  void there(const std::function<void()>& what) const;
  /// The same in the first one.
  void here(const std::function<void()>& what) const;
  /// The other host vanishes: what is sent to it is lost, and nothing comes from it.
  void vanish() const;
  void come_back() const;

 private:
  network_pair() = default;
  std::string here_;
  std::string there_;
};

}  // namespace kubelane::test
