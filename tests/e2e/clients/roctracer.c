/* Stands in for roctracer64, which is not in Debian: CuPy calls it only to profile. */
void roctracer_start(void) {}
void roctracer_stop(void) {}
