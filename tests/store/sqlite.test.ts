import { describeStore } from './conformance.ts'
import { createSqliteFixture } from './sqlite-fixture.ts'

describeStore('SQLite', createSqliteFixture)
