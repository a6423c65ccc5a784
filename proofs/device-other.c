/* What others on a machine with a device may do: keep its memory, or break a process's CUDA context for good. Through
   the driver, found at run time, so that neither a CUDA compiler nor its headers are needed (proofs/device.R). */
#include <dlfcn.h>
#include <stddef.h>

/* Leaves this many bytes of the device's memory; *held: the bytes taken, negative where CUDA fails. */
void hold_device_memory(double *leave, double *held);
/* Runs a kernel that traps: all later CUDA calls of this process fail. *status: what CUDA says, 0 where it did not. */
void break_device_context(int *status);

typedef int (*driver_call)();

static void *driver;

static driver_call find(const char *name) { return (driver_call) dlsym(driver, name); }

/* The context that the CUDA runtime uses, too. */
static int begin(void)
{
  void *context;
  int device;
  if (!driver) driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) return -1;
  int failed = find("cuInit")(0u);
  if (!failed) failed = find("cuDeviceGet")(&device, 0);
  if (!failed) failed = find("cuDevicePrimaryCtxRetain")(&context, device);
  return failed ? failed : find("cuCtxSetCurrent")(context);
}

void hold_device_memory(double *leave, double *held)
{
  size_t room, all, at, part = (size_t) 1 << 30;
  *held = -1;
  if (begin()) return;
  *held = 0;
  while (part >= (1u << 20)) {
    if (find("cuMemGetInfo_v2")(&room, &all)) return;
    if ((double) room < *leave + (double) part || find("cuMemAlloc_v2")(&at, part)) part /= 2;
    else *held += (double) part;
  }
}

void break_device_context(int *status)
{
  static const char code[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry fault()\n{\n  trap;\n}\n";
  void *module, *kernel;
  *status = 0;
  if (begin() || find("cuModuleLoadData")(&module, code) ||
      find("cuModuleGetFunction")(&kernel, module, "fault")) return;
  (void) find("cuLaunchKernel")(kernel, 1u, 1u, 1u, 1u, 1u, 1u, 0u, NULL, NULL, NULL);
  *status = find("cuCtxSynchronize")();
}
