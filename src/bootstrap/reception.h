#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/config.h"
#include "bootstrap/connection.h"
#include "bootstrap/handshake.h"
#include "bootstrap/sockets.h"

struct pollfd;

namespace ringbolt::bootstrap {

/// Rank 0 while the others come: takes whoever proves to belong here, refuses everybody else, and lets no stranger
/// delay a rank. Not thread-safe. Owns connections of callers and members until run() hands those of the members
/// over. `config` and `key` outlive it.
class Reception {
 public:
  /// Listens. May ask the name service, and then blocks until `deadline_ns`. Throws base::Error.
  Reception(const Config& config, const Key& key, uint64_t deadline_ns);

  /// Blocks until all ranks have come: their connections by rank (none for rank 0). Throws base::Error when a rank is
  /// lost again, when two ranks contradict each other (at once), or when some have not come by `deadline_ns`; all who
  /// have come are told the same. Once.
  std::vector<Connection> run(uint64_t deadline_ns);

 private:
  /// Someone who has not said yet who it is, or has been refused and is about to read why.
  struct Caller {
    Connection connection;
    AnsweringHandshake handshake;
    uint64_t deadline_ns = 0;
    bool is_refused = false;
  };
  struct Member {
    Connection connection;
    uint64_t incarnation = 0;
  };
  using Callers = std::list<Caller>;

  // Blocks until then, or for most_wait_ms() of the configuration.
  void wait(uint64_t deadline_ns);
  void accept_all(int listening_fd);
  // Caller stays in the list whatever comes of it; drop_finished() takes it out.
  void serve(Caller& caller, bool has_input);
  // Sends the reason to whoever has spoken the protocol, and leaves it a second to read that.
  void dismiss(Caller& caller, const std::string& reason);
  // Moves the caller's connection to its member. May call fail(), which throws.
  void admit(Caller& caller);
  void serve_member(uint32_t rank);
  void drop_finished();
  uint64_t roster_due_ns() const;
  void tell_roster();
  std::vector<uint32_t> missing() const;
  // Tells everybody, then throws base::Error: the object is of no use afterwards.
  [[noreturn]] void fail(int error, const std::string& why);

  const Config& config_;
  const Key& key_;
  // Empty where the program gave a descriptor: that stays the program's.
  Listening own_listening_;
  std::vector<int> listening_fds_;
  std::string where_;
  Callers callers_;
  std::vector<Member> members_;  ///< by rank
  uint32_t n_joined_ = 1;
  uint32_t n_told_ = 1;
  // In base::now_ns(), as are all times here.
  uint64_t next_roster_ns_ = 0;
  uint64_t accept_again_ns_ = 0;  ///< no descriptors are left until then
  std::vector<std::string> refusals_;
  uint64_t n_refused_ = 0;
};

}  // namespace ringbolt::bootstrap
