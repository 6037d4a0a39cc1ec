// SPDX-License-Identifier: Apache-2.0
// The double of NVIDIA's management library: libnvidia-ml.so.1. It reports all GPUs of the machine, regardless of
// CUDA_VISIBLE_DEVICES, and every call before nvmlInit_v2() fails. Its values are fixed, because a program has neither
// temperatures nor links.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/software_gpu/gpu.h"

struct nvmlDevice_st {
  int number = 0;
};

namespace {

using Handle = const nvmlDevice_st*;

// Values of nvml.h.
constexpr int success = 0;
constexpr int uninitialized = 1;
constexpr int invalid_argument = 2;
constexpr int not_supported = 3;
constexpr int not_found = 6;
constexpr int insufficient_size = 7;

constexpr unsigned clock_mhz = 1000;
constexpr unsigned milliwatts = 42'000;
constexpr unsigned celsius = 20;

/// Percentages. They are always 0, because nothing measures the GPUs.
struct Utilization {
  unsigned gpu = 0;
  unsigned memory = 0;
};
constexpr std::size_t max_devices = 64;

std::atomic<int>& started() {
  static std::atomic<int> times = 0;
  return times;
}

const std::array<nvmlDevice_st, max_devices>& devices() {
  static const std::array<nvmlDevice_st, max_devices> numbered = [] {
    std::array<nvmlDevice_st, max_devices> handles{};
    for (std::size_t i = 0; i < handles.size(); ++i) {
      handles[i].number = static_cast<int>(i);
    }
    return handles;
  }();
  return numbered;
}

std::string uuid_in_words(int number) {
  std::string text = "GPU";
  const std::string bytes = software_gpu::uuid_in_machine(number);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::array<char, 4> hex{};
    std::snprintf(hex.data(), hex.size(), "%02x", static_cast<unsigned>(static_cast<unsigned char>(bytes[i])));
    text += i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
    text += hex.data();
  }
  return text;
}

/// Writes a value of a device if the library has been initialized.
template <class Value>
int answer(Handle device, Value* to, Value value) {
  if (started() <= 0) {
    return uninitialized;
  }
  if (device == nullptr || to == nullptr) {
    return invalid_argument;
  }
  *to = value;
  return success;
}

int answer(char* text, unsigned size, const char* value) {
  if (started() <= 0) {
    return uninitialized;
  }
  if (std::strlen(value) >= size) {
    return insufficient_size;
  }
  std::strcpy(text, value);
  return success;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  ++started();
  return success;
}

int nvmlShutdown() { return --started() >= 0 ? success : uninitialized; }

int nvmlSystemGetDriverVersion(char* text, unsigned size) { return answer(text, size, "0.0 (software GPU)"); }

int nvmlDeviceGetCount_v2(unsigned* count) {
  return answer(devices().data(), count, static_cast<unsigned>(software_gpu::settings().devices));
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle* device) {
  if (static_cast<int>(index) >= software_gpu::settings().devices) {
    return invalid_argument;
  }
  return answer(devices().data(), device, Handle{&devices()[index]});
}

int nvmlDeviceGetHandleByUUID(const char* uuid, Handle* device) {
  for (int i = 0; i < software_gpu::settings().devices; ++i) {
    if (uuid_in_words(i) == uuid) {
      return nvmlDeviceGetHandleByIndex_v2(static_cast<unsigned>(i), device);
    }
  }
  return started() > 0 ? not_found : uninitialized;
}

int nvmlDeviceGetName(Handle device, char* text, unsigned size) {
  return device == nullptr ? invalid_argument : answer(text, size, "software GPU");
}

int nvmlDeviceGetPciInfo_v3(Handle device, char* info) {
  constexpr std::size_t address_at = 36;  // offset after the legacy address and five numbers
  char first = 0;
  const int status = answer(device, &first, '\0');
  if (status == success) {
    std::snprintf(info + address_at, 32, "00000000:%02X:00.0", static_cast<unsigned>(device->number) + 1);
  }
  return status;
}

int nvmlDeviceGetClockInfo(Handle device, unsigned /*which*/, unsigned* mhz) { return answer(device, mhz, clock_mhz); }
int nvmlDeviceGetMaxClockInfo(Handle device, unsigned /*which*/, unsigned* mhz) {
  return answer(device, mhz, clock_mhz);
}
int nvmlDeviceGetPowerUsage(Handle device, unsigned* power) { return answer(device, power, milliwatts); }
int nvmlDeviceGetEnforcedPowerLimit(Handle device, unsigned* power) { return answer(device, power, milliwatts); }
int nvmlDeviceGetPowerManagementDefaultLimit(Handle device, unsigned* power) {
  return answer(device, power, milliwatts);
}
int nvmlDeviceGetUtilizationRates(Handle device, Utilization* percent) { return answer(device, percent, {}); }
int nvmlDeviceGetTemperature(Handle device, unsigned /*sensor*/, unsigned* degrees) {
  return answer(device, degrees, celsius);
}
int nvmlDeviceGetCurrentClocksEventReasons(Handle device, unsigned long long* reasons) {
  return answer(device, reasons, 0ULL);
}
int nvmlDeviceGetNvLinkState(Handle /*device*/, unsigned /*link*/, unsigned* /*is_up*/) {
  return started() > 0 ? not_supported : uninitialized;
}
int nvmlDeviceGetP2PStatus(Handle from, Handle to, unsigned /*capability*/, unsigned* status) {
  return to == nullptr ? invalid_argument : answer(from, status, 0U);
}
}
