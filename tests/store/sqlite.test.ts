import { describeStore } from './conformance.ts'
import { createSqlitePlace } from './sqlite-place.ts'

describeStore('SQLite', createSqlitePlace)
