#include "transport/seal.h"

namespace ringbolt::transport {

void Seal::begin(uint64_t own_token) {
  own_token_.store(own_token, std::memory_order_relaxed);
  peer_token_.store(0, std::memory_order_relaxed);
  is_required_.store(false, std::memory_order_relaxed);
}

void Seal::hear(const wire::Greeting& greeting) {
  const uint64_t own_token = own_token_.load(std::memory_order_relaxed);
  if (own_token != 0 && greeting.echo == own_token && greeting.is_sealing) {
    is_required_.store(true, std::memory_order_relaxed);
  }
}

std::optional<wire::Greeting> Seal::take(const wire::Greeting& greeting) {
  const uint64_t own_token = own_token_.load(std::memory_order_relaxed);
  if (own_token == 0) {
    return std::nullopt;
  }
  const bool is_genuine = greeting.echo == own_token;
  const bool is_news = is_genuine && greeting.token != peer_token();
  if (is_news) {
    peer_token_.store(greeting.token, std::memory_order_relaxed);
  }
  // An echo that is wrong is that of an earlier connection: the peer has to hear of this one.
  const bool is_outdated = !is_genuine && greeting.echo != 0;
  if (!greeting.wants_answer && !is_news && !is_outdated) {
    return std::nullopt;
  }
  wire::Greeting answer = this->greeting();
  answer.echo = greeting.token;
  return answer;
}

wire::Greeting Seal::greeting() const {
  const uint64_t peer = peer_token();
  return {.wants_answer = !is_agreed(),
          .is_sealing = peer != 0,
          .token = own_token_.load(std::memory_order_relaxed),
          .echo = peer};
}

}  // namespace ringbolt::transport
