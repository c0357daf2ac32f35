// Fills the disk through a store and prints the outcome as JSON.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AppError } from '../../../src/base/errors.ts'
import { readMailbox } from '../../../src/messages/messages.ts'
import { openSqliteStore } from '../../../src/store/sqlite/open.ts'
import { send, storeOptions, verifyAudit } from '../store-fixture.ts'

const folder = process.argv[2]!
const ballast = join(folder, 'ballast')
writeFileSync(ballast, Buffer.alloc(400_000))
const store = await openSqliteStore(join(folder, 'store.db'), storeOptions({}))
const content = 'x'.repeat(20_000)

const accepted: number[] = []
let fault: AppError | undefined
while (fault === undefined && accepted.length < 1000) {
  try {
    accepted.push(await send(store, { content }))
  } catch (error) {
    fault = error as AppError
  }
}
const again = await send(store, { content }).catch((error: AppError) => error.code)
const whileFull = (await readMailbox(store, 'Bob', 'all')).map((mail) => mail.id)

rmSync(ballast)
const afterwards = await send(store, { content }).catch((error: AppError) => error.code)
const audit = await verifyAudit(store)
const problems = await store.check()
await store.close()
const report = {
  accepted,
  code: fault?.code,
  hint: fault?.hint,
  again,
  whileFull,
  afterwards,
  audit,
  problems,
}
process.stdout.write(JSON.stringify(report))
