/** Shows what a message waits for, with a real pane that contains a person's draft. */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { createTeamFolder, type TeamFolder } from '../orc.ts'

const RECEIVER = resolve(import.meta.dirname, '../../fakes/raw-receiver.ts')
const DRAFT = "its input box holds a person's draft"

let team: TeamFolder
let socket: string

beforeEach(() => {
  team = createTeamFolder()
  const settings = {
    command: [process.execPath, RECEIVER, join(team.folder, 'received.jsonl')],
    patterns: { idle: '^> $', submitted: '^got {id}$' },
    patience_ms: 300,
  }
  const agents = { Master: {}, Worker: { program: 'any', with: settings } }
  writeFileSync(team.configFile, JSON.stringify({ agents }))
  const loaded = readConfig(team.configFile, {})
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.error))
  socket = loaded.value.config.tmux.socket
})
afterEach(() => team.close())

const tmux = (...words: string[]) =>
  execFileSync('tmux', ['-u', '-L', socket, ...words], { encoding: 'utf8' })
const show = async (args: string) => (await team.orc(args)).out

describe('a message before a draft', () => {
  it('stays queued, and its steps, the status and the title of the pane say why (C27)', async () => {
    const { engine } = await team.start()
    await expect.poll(() => engine.sessions.session('Worker')?.state, { timeout: 15_000 }).toBe('idle')
    const [, pane] = tmux('list-panes', '-a', '-F', '#{pane_id}').trim().split('\n')
    tmux('send-keys', '-t', pane!, 'half a thought')
    await expect.poll(() => tmux('capture-pane', '-p', '-t', pane!)).toContain('> half a thought')
    await team.orc('send-message --from Master --to Worker hello')

    await expect.poll(() => engine.sessions.waitsFor('Worker'), { timeout: 10_000 }).toBe(DRAFT)
    await expect
      .poll(() => show('message msg_1'))
      .toMatch(/queued\s+not written: its input box holds a person's draft/)
    expect(await show('message msg_1')).toContain(`waits: ${DRAFT}`)
    expect(await show('status')).toMatch(new RegExp(`Worker +idle +1 waiting +waits: ${DRAFT}`))
    const title = () => tmux('display-message', '-p', '-t', pane!, '#{@orc_title}').trim()
    await expect.poll(title, { timeout: 5000 }).toBe(`Worker · idle · 1 waiting: ${DRAFT}`)

    tmux('send-keys', '-t', pane!, 'Enter')
    await expect.poll(() => show('message msg_1'), { timeout: 15_000 }).toMatch(/submitted|read/)
    expect(await show('message msg_1')).not.toContain('waits:')
    expect(await show('status')).not.toContain('waits:')
  })

  it('shows the state of the agent it waits for', async () => {
    await team.start()
    await team.orc('stop Worker')
    await team.orc('send-message --from Master --to Worker hello')
    await expect.poll(() => show('message msg_1')).toContain('waits: it is not running')
  })
})
