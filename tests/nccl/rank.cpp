#include "rank.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace ringbolt::test {

bool send_packet(int socket, const Packet& packet) {
  std::string bytes(sizeof packet.header + std::min(packet.text.size(), kMostText), '\0');
  std::memcpy(bytes.data(), &packet.header, sizeof packet.header);
  std::memcpy(bytes.data() + sizeof packet.header, packet.text.data(), bytes.size() - sizeof packet.header);
  ssize_t sent = 0;
  do {
    sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

bool receive_packet(int socket, Packet& packet) {
  std::string bytes(sizeof packet.header + kMostText, '\0');
  ssize_t length = 0;
  do {
    length = ::recv(socket, bytes.data(), bytes.size(), 0);
  } while (length < 0 && errno == EINTR);
  if (length < static_cast<ssize_t>(sizeof packet.header)) {
    return false;
  }
  std::memcpy(&packet.header, bytes.data(), sizeof packet.header);
  packet.text.assign(bytes, sizeof packet.header, static_cast<size_t>(length) - sizeof packet.header);
  return true;
}

Worker::Worker(Seat& seat)
    : thread_([this, &seat] {
        Plugin::take_seat(&seat);
        std::unique_lock lock(mutex_);
        while (true) {
          changed_.wait(lock, [this] { return is_ending_ || !queue_.empty(); });
          if (queue_.empty()) {
            return;
          }
          std::packaged_task<void()> task = std::move(queue_.front());
          queue_.pop_front();
          lock.unlock();
          task();
          lock.lock();
        }
      }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

std::future<void> Worker::start(std::function<void()> work) {
  std::packaged_task<void()> task(std::move(work));
  std::future<void> done = task.get_future();
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
  }
  changed_.notify_one();
  return done;
}

Rank::Rank(int id, int round, const Options& options, Board& board, int socket)
    : id_(id), round_(round), options_(options), board_(board), socket_(socket) {
  Plugin::take_seat(&board_.seats[kServiceSeat]);
}

void Rank::load() {
  step("load the plugin");
  plugin_ = std::make_unique<Plugin>(options_.plugin, options_.api, board_);
  expect(plugin_->init(&context_, 0x5eed), "init");
  int devices = 0;
  expect(plugin_->devices(&devices), "devices");
  if (devices < 1) {
    throw Failure("no devices: " + Plugin::last_warning());
  }
}

void Rank::unload() {
  step("unload the plugin");
  progress_.reset();
  if (plugin_) {
    expect(plugin_->finalize(context_), "finalize");
    plugin_.reset();
  }
}

// NCCL counts before v11: one init for the process, no finalize at all.
void Rank::renew_context() {
  if (plugin_->has_finalize()) {
    expect(plugin_->finalize(context_), "finalize");
    expect(plugin_->init(&context_, 0x5eed), "init");
    int devices = 0;
    expect(plugin_->devices(&devices), "devices");
  }
}

Worker& Rank::progress() {
  if (!progress_) {
    progress_ = std::make_unique<Worker>(board_.seats[kProgressSeat]);
  }
  return *progress_;
}

void Rank::post(int to, const std::string& text) {
  send_packet(socket_, {.header = {.kind = Packet::mail, .rank = to}, .text = text});
}

Packet Rank::next() {
  Packet packet;
  if (!receive_packet(socket_, packet)) {
    _exit(1);  // without the parent there is nobody to tell
  }
  return packet;
}

std::string Rank::take(int from) {
  while (mail_[from].empty()) {
    Packet packet = next();
    mail_[packet.header.rank].push_back(std::move(packet.text));
  }
  std::string text = std::move(mail_[from].front());
  mail_[from].pop_front();
  return text;
}

void Rank::wait_for_go() {
  for (Packet packet = next(); packet.header.kind != Packet::go; packet = next()) {
    mail_[packet.header.rank].push_back(std::move(packet.text));
  }
}

void Rank::barrier() {
  send_packet(socket_, {.header = {.kind = Packet::barrier}});
  wait_for_go();
}

void Rank::strike(int victim, int signal) {
  send_packet(socket_, {.header = {.kind = Packet::strike, .rank = victim, .signal = signal}});
  wait_for_go();
}

void Rank::wait_for_the_end() {
  step("wait for the end");
  while (true) {
    next();
  }
}

void Rank::die() {
  send_packet(socket_, {.header = {.kind = Packet::doomed}});
  kill(getpid(), SIGKILL);
  wait_for_the_end();
}

void Rank::note(const std::string& text) { send_packet(socket_, {.header = {.kind = Packet::note}, .text = text}); }

void Rank::row(const std::string& text) { send_packet(socket_, {.header = {.kind = Packet::row}, .text = text}); }

}  // namespace ringbolt::test
