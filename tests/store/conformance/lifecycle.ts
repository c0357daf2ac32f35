import { expect, it } from 'vitest'
import { readMailbox } from '../../../src/messages/messages.ts'
import { MIGRATIONS } from '../../../src/store/schema/migrations.ts'
import { type CurrentFixture, send } from '../store-fixture.ts'

export function lifecycleCases(fixture: CurrentFixture) {
  it('keeps everything across a reopening', async () => {
    const first = await fixture().open()
    for (let count = 0; count < 3; count++) await send(first, { content: `content ${count}` })
    const before = await readMailbox(first, 'Bob', 'all')
    await first.close()
    const second = await fixture().open()
    expect(await readMailbox(second, 'Bob', 'all')).toEqual(before)
    expect(await second.check()).toEqual([])
  })

  it('refuses a store that a newer version wrote and leaves it unchanged', async () => {
    const store = await fixture().open()
    await send(store)
    await store.close()
    const newer = MIGRATIONS.length + 1
    await fixture().tamper(`UPDATE meta SET value = '${newer}' WHERE key = 'schema_version'`)
    await expect(fixture().open()).rejects.toMatchObject({
      code: 'STORE_NEWER',
      message: expect.stringContaining(`version ${newer}`),
      hint: expect.stringContaining('Update'),
    })
    await fixture().tamper(`UPDATE meta SET value = '${MIGRATIONS.length}' WHERE key = 'schema_version'`)
    expect(await send(await fixture().open())).toBe(2)
  })

  it('refuses a store whose version is not a number', async () => {
    await (await fixture().open()).close()
    for (const nonsense of ['q', '', '1.5', '-1', '0']) {
      await fixture().tamper(`UPDATE meta SET value = '${nonsense}' WHERE key = 'schema_version'`)
      await expect(fixture().open()).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
    }
  })

  it('finishes queued units before it closes, then refuses new ones with a clear error', async () => {
    const store = await fixture().open()
    const underWay = Promise.all(Array.from({ length: 300 }, () => send(store)))
    const closing = store.close()
    await expect(send(store)).rejects.toMatchObject({ code: 'SERVICE_STOPPING' })
    await closing
    expect(await underWay).toHaveLength(300)
    await expect(send(store)).rejects.toMatchObject({ code: 'SERVICE_STOPPING' })
    const again = await fixture().open()
    expect(await readMailbox(again, 'Bob', 'all')).toHaveLength(300)
  })

  it('can be closed twice', async () => {
    const store = await fixture().open()
    await Promise.all([store.close(), store.close()])
    await store.close()
  })

  it('returns the number of queued units', async () => {
    const store = await fixture().open()
    const works = [send(store), send(store), send(store)]
    expect(store.pending()).toBe(3)
    await Promise.all(works)
    expect(store.pending()).toBe(0)
  })
}
