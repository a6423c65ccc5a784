/* Devices that are opened beside a call's work, for later calls, and libraries beside a device, for this one. To start
 * the driver and make a context takes a third of a second and one thread; a call that would save less does not wait for
 * it. Windows has no devices. */
#pragma once

/* Begins to open a device of the CUDA object in `libs`, once per process, and libraries (WEFT_BLAS and others of
 * backend.h, added up; or 0); for R's thread. */
void weft_beside_open(const char *libs, int device, int libraries);
/* Whether a device was opened so. */
int weft_beside_opened(int device);
/* Until all threads have ended: before the process exits, or CUDA would be taken down under them. */
void weft_beside_wait(void);
