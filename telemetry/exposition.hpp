#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kubelane::telemetry {

class family;

/// Families in Prometheus' text format, version 0.0.4. A family without a series shows its name,
/// its type and what it means all the same, so that whoever looks finds out what there is.
class exposition {
 public:
  std::string render() const;
  /// Drops the series of every family whose label `upstream` has this value.
  void forget(std::string_view upstream);

 private:
  friend class family;
  std::vector<family*> all_;
};

/// What a family is called. Names of labels in alphabetical order, two at most; the texts outlive
/// the family.
struct family_name {
  const char* name;
  const char* help;
  std::array<const char*, 2> labels = {nullptr, nullptr};
};

/// One metric. Its few series are looked for one after the other, which costs less than building a
/// key; each connection counts here several times.
class family {
 public:
  family(const family&) = delete;
  family& operator=(const family&) = delete;

  /// Drops the series whose label `upstream` has this value.
  virtual void forget(std::string_view upstream) = 0;
  virtual void render(std::string& out) const = 0;

 protected:
  /// `all` outlives this.
  family(exposition& all, const family_name& named, const char* type);
  virtual ~family() = default;

  struct labels {
    std::string first;
    std::string second;
  };
  bool is_of(const labels& series, std::string_view upstream) const;
  void render_head(std::string& out) const;
  void render_series(std::string& out, std::string_view suffix, const labels& of,
                     std::string_view le, double value) const;

 private:
  family_name named_;
  const char* type_;
};

/// A counter or a gauge.
class values : public family {
 public:
  enum class type { counter, gauge };
  values(exposition& all, type what, const family_name& named);

  /// The series with these values of its labels; 0 if it is new.
  double& at(std::string_view first = {}, std::string_view second = {});
  void clear() { series_.clear(); }
  void forget(std::string_view upstream) override;
  void render(std::string& out) const override;

 private:
  struct series {
    labels of;
    double value = 0;
  };
  std::vector<series> series_;
  std::size_t next_ = 0;  ///< where to look first
};

/// A histogram of durations. Its buckets are few, since each is a series: as it should be, slow,
/// and where a hedge and the default time-out of a probe are near.
class durations : public family {
 public:
  static constexpr std::array bounds = {0.01, 0.1, 0.5};

  durations(exposition& all, const family_name& named);

  void observe(std::string_view first, double seconds);
  void forget(std::string_view upstream) override;
  void render(std::string& out) const override;

 private:
  struct series {
    labels of;
    std::array<std::uint64_t, bounds.size() + 1> counts{};  // of each bucket alone
    double sum = 0;
  };
  std::vector<series> series_;
};

}  // namespace kubelane::telemetry
