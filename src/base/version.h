/* version.h -- the version that --version, results and stored runs state. Room: base. */
#ifndef HP_BASE_VERSION_H
#define HP_BASE_VERSION_H

#define HP_VERSION "0.1.0"

#endif
