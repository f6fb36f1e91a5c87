#include "stream/cm_endpoint.h"

#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace ringbolt::stream {
namespace {

// Of each of the two steps; the stream's own deadline may come first.
constexpr int kResolveMs = 2000;
// Three bits (InfiniBand Architecture Specification 1.4, 9.7.5.2.8 for RNR): 7 is the most.
constexpr uint8_t kMostRetries = 7;  // of RNR: for ever
constexpr uint8_t kServerRetries = 5;
// Stock peers ask for no more than one READ at a time, and use none.
constexpr uint8_t kReads = 1;

rdma_conn_param parameters(uint8_t retries) {
  rdma_conn_param wanted{};
  wanted.responder_resources = wanted.initiator_depth = kReads;
  wanted.retry_count = retries;
  wanted.rnr_retry_count = kMostRetries;
  return wanted;
}

/// Empty, or what `call` refuses, which has answered so.
std::string words_of_call(const char* call, int answer) {
  return answer == 0 ? std::string() : fmt::format("{}: {}", call, base::reason_of(errno));
}

}  // namespace

std::string CmEndpoint::resolve_next_target() {
  // Before another is made: it may have the device's last queue pair.
  id_.reset();
  peer_ = targets_[next_target_++];
  id_.emplace(manager_, channel_);
  // Some refusals of the connection manager leave it alone.
  errno = 0;
  return words_of_call("rdma_resolve_addr",
                       manager_.calls().resolve_addr(id_->get(), nullptr, peer_.get(), kResolveMs));
}

std::string CmEndpoint::resolve_route() const {
  errno = 0;
  return words_of_call("rdma_resolve_route", manager_.calls().resolve_route(id_->get(), kResolveMs));
}

std::string CmEndpoint::connect() const {
  rdma_conn_param wanted = parameters(kMostRetries);
  errno = 0;
  return words_of_call("rdma_connect", manager_.calls().connect(id_->get(), &wanted));
}

void CmEndpoint::adopt(verbs::OwnedCm<rdma_cm_id> request) {
  id_.emplace(manager_, std::move(request), channel_);
  peer_ = Address(*rdma_get_peer_addr(id_->get()));
}

void CmEndpoint::accept() const {
  rdma_conn_param wanted = parameters(kServerRetries);
  errno = 0;
  if (manager_.calls().accept(id_->get(), &wanted) != 0) {
    throw base::Error(errno == 0 ? ECONNABORTED : errno, "rdma_accept", peer_.text());
  }
}

void CmEndpoint::note_first_data() {
  if (!std::exchange(has_noted_data_, true)) {
    manager_.calls().notify(id_->get(), IBV_EVENT_COMM_EST);
  }
}

}  // namespace ringbolt::stream
