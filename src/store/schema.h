/* schema.h -- the store's tables, as a list of migrations that is only ever appended to. Room:
 * store. */
#ifndef HP_STORE_SCHEMA_H
#define HP_STORE_SCHEMA_H

/* hp_schema[v] turns a store of version v into one of version v + 1; hp_schema_version is how
 * many there are. */
extern const char *const hp_schema[];
extern const int hp_schema_version;

#endif
