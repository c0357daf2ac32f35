// Opens a store, reports it, and holds it until its standard input ends or it is killed.
import { openSqliteStore } from '../../../src/store/sqlite/open.ts'
import { send, storeOptions } from '../store-fixture.ts'

const store = await openSqliteStore(process.argv[2]!, storeOptions({ pid: process.pid }))
await send(store)
process.stdout.write('ready\n')
process.stdin.on('end', () => void store.close()).resume()
