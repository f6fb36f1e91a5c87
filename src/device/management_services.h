#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "wire/flow.h"

/// Which process of this host listens for which service id: one text file `<slots>/<slot>.services` per process,
/// replaced whole, described in docs/formats/rendezvous.md. A file counts while its process receives datagrams.
namespace ringbolt::device {

struct Service {
  uint64_t token = 0;  ///< within its process; not in the file
  uint64_t service_id = 0;
  wire::Address address{};
  bool is_any = false;
  bool is_ipv4 = false;
  bool is_family_only = false;
  bool is_reusable = false;
  bool is_listening = false;
  friend bool operator==(const Service&, const Service&) = default;

  /// Whether a request to `destination` is for it.
  bool accepts(uint64_t id, const wire::Address& destination) const;
};

/// A listener that went away a moment ago.
struct ClosedService {
  uint64_t service_id = 0;
  uint64_t closed_ns = 0;  ///< base::now_ns(), the same clock in all processes of a host
  friend bool operator==(const ClosedService&, const ClosedService&) = default;
};

/// One process' services as others read them.
struct ServiceFile {
  std::vector<wire::Address> gids;  ///< of all ports of its node: which host it is on
  std::vector<Service> services;
  std::vector<ClosedService> closed;
  friend bool operator==(const ServiceFile&, const ServiceFile&) = default;
};
std::string emit(const ServiceFile& file);
/// Nothing for a text that emit() would not write.
std::optional<ServiceFile> parse_services(const std::string& text);

/// 0, EADDRINUSE or EADDRNOTAVAIL: whether `wanted` may stand beside `other`. `may_reuse`: SO_REUSEADDR counts.
int conflict(const Service& wanted, const Service& other, bool may_reuse);

/// The services of this process, and a look at those of the others. Thread-safe.
class ServiceBook {
 public:
  /// Whether the process of a slot receives datagrams: the services of others don't count.
  using IsAlive = std::function<bool(uint32_t slot)>;

  ServiceBook(std::string slots_directory, uint32_t slot);

  /// The GIDs of all ports of our node; they tell hosts apart that share a folder (nodes of an emulated cluster). What
  /// was written with others is written anew. Throws std::bad_alloc.
  void set_gids(std::vector<wire::Address> gids);
  /// 0, EADDRINUSE, EADDRNOTAVAIL, or the errno of the file system.
  int bind(const Service& service, const IsAlive& is_alive);
  /// Also EINVAL for an unknown token.
  int listen(uint64_t token, const IsAlive& is_alive);
  void unbind(uint64_t token);

  /// The slots whose processes say they listen for the id at that address; `gid` given: only those of its host.
  std::vector<uint32_t> owners_of(uint64_t service_id, const wire::Address& destination,
                                  const std::optional<wire::Address>& gid) const;
  /// Somebody listened for the id a moment ago and lives on: programs that listen anew for each connection (perftest)
  /// count on the next request being slower than they are.
  bool is_between_listeners(uint64_t service_id, uint64_t now_ns) const;
  /// Forgets all and removes the file.
  void leave();

 private:
  struct Other {
    uint32_t slot;
    ServiceFile file;
  };
  int change(Service service, bool is_bind, const IsAlive& is_alive);
  int conflict_with_own(const Service& service, bool is_bind) const RINGBOLT_REQUIRES(mutex_);
  int conflict_with_others(const Service& service, bool is_bind, const IsAlive& is_alive) const
      RINGBOLT_REQUIRES(mutex_);
  std::vector<Other> others() const;
  int write_file() const RINGBOLT_REQUIRES(mutex_);

  const std::string directory_;
  const uint32_t slot_;
  mutable base::Mutex mutex_;
  ServiceFile own_ RINGBOLT_GUARDED_BY(mutex_);
};

}  // namespace ringbolt::device
