import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { insertConduct } from '../../src/github/store.ts'
import { showInvisible } from '../../web/src/components/exact-text.ts'
import { canBrowse, type Window } from './browser.ts'
import { useControlRoom } from './control-room.ts'
import { until, visit } from './page.ts'
import { startTeam, type TestTeam } from './team.ts'
import { CORPUS, harmIn, recordReports } from './xss-corpus.ts'

const OFF = { rate: 'off', hops: 'off', ping_pong: 'off', pair_rate: 'off' } as const

/** Escape sequences for links, the title and the clipboard. */
const SEQUENCES = [
  'before \u001b]8;;javascript:window.owned=1\u001b\\a link\u001b]8;;\u001b\\',
  '\u001b]0;owned title\u0007\u001b]52;c;b3duZWQ=\u0007',
  '\u001b[31mred <b>bold</b>\u001b[0m after',
].join(' ')

/** Makes the text a valid file name: no slashes and no direction characters. */
const asName = (text: string) => text.replace(/[/\u202a-\u202e\u2066-\u2069]/g, '|')
/** Removes spaces and zero-width characters, which a terminal wraps and draws in its own way. */
const bare = (text: string) => text.replace(/[\s\p{Cf}]/gu, '')

describe.skipIf(!canBrowse)('hostile output of an agent', { timeout: 90_000 }, () => {
  let team: TestTeam
  let folder: string
  let run: string
  let window: Window
  let page: Page
  let worker: Client
  let master: Client

  const { open, openWindow } = useControlRoom(async () => {
    folder = mkdtempSync(join(tmpdir(), 'orchub-xss-'))
    mkdirSync(join(folder, 'plan'))
    CORPUS.forEach((text, index) => {
      writeFileSync(join(folder, `text-${index}`), `${text}\n`)
      writeFileSync(join(folder, `name-${index}`), asName(text))
    })
    team = await startTeam(
      {
        Master: { script: [] },
        Worker: { more: { parent: 'Master', permissions: { terminate_agent: 'ask' } }, script: [] },
        Talker: {
          script: [...CORPUS, SEQUENCES].map((text, index) => ({
            ...{ on: { text: `Title: Say-${index}.` }, after_ms: 20, say: `Said: ${text}` },
          })),
        },
      },
      {
        ...{ limits: OFF, people: { mo: { role: 'moderator' } } },
        tasks: {
          checks: Object.fromEntries(
            CORPUS.map((_, index) => [`check${index}`, { command: `cat ${join(folder, `text-${index}`)}` }]),
          ),
        },
      },
    )
    worker = await team.clientOf('Worker')
    master = await team.clientOf('Master')
    run = (await team.client.startRun({ plan: plan(), folder: join(folder, 'plan') })).run_id
    await until(async () => (await team.client.run(run)).state !== 'running', 40_000)
    return team
  })
  beforeAll(async () => {
    window = await open({ prepare: recordReports })
    page = window.page
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  /** For each text one agent that prints it, and uses it as an output name and summary, and one that fails with it. */
  function plan(): string {
    const agents = CORPUS.flatMap((_, index) => {
      const text = join(folder, `text-${index}`)
      const steps = [
        `cat ${text}`,
        `cp ${text} "outbox/$(cat ${join(folder, `name-${index}`)})"`,
        `cp ${text} outbox/summary.md`,
      ].join('; ')
      const status = `{ printf '%s' '{"state":"failed","recoverable":false,"error":{"message":'; ${JSON_TEXT(text)}; printf '}}'; } > status.json; cp ${text} error_report.md`
      return [
        `  made${index}: { command: ${JSON.stringify(steps)}, retries: 0 }`,
        `  failed${index}: { command: ${JSON.stringify(`cat ${text} >&2; ${status}; exit 3`)}, retries: 0 }`,
      ]
    })
    return `agents:\n${agents.join('\n')}\n`
  }

  const shownText = async (hostile: string, where = page.locator('main')) => {
    const wanted = bare(hostile)
    await until(async () => bare((await where.allInnerTexts()).join('\n')).includes(wanted), 15_000).catch(
      () => {
        throw new Error(`The text is not shown at ${page.url()}`)
      },
    )
    expect(await harmIn(page), page.url()).toEqual([])
  }

  const cases = CORPUS.map((text, index) => [text, index] as const)

  it.each(cases)(
    'is shown as text in a transcript, a terminal and its scrollback: %s',
    async (hostile, index) => {
      await team.client.command({
        type: 'send_message',
        to: 'Talker',
        title: `Say-${index}.`,
        content: 'Please.',
      })
      await until(async () => (await team.client.terminal('Talker')).screen.includes(`Say-${index}.`))
      await visit(page, 'agents/Talker?tab=transcript')
      await shownText(`Said: ${hostile}`, page.locator('.said'))
      await visit(page, 'agents/Talker')
      await shownText(`Said: ${hostile}`, page.locator('.xterm-rows'))
      await page.getByRole('button', { name: 'Screen reader' }).click()
      await shownText(`Said: ${hostile}`, page.locator('.xterm-accessibility'))
      await page.getByRole('button', { name: 'Screen reader' }).click()
      await page.getByRole('button', { name: 'Scrollback' }).click()
      await shownText(`Said: ${hostile}`, page.getByRole('log'))
      expect(window.complaints).toEqual([])
    },
  )

  it('ignores terminal sequences: no link, no title, no clipboard', async () => {
    await team.client.command({
      ...{ type: 'send_message', to: 'Talker', title: `Say-${CORPUS.length}.`, content: 'Please.' },
    })
    await visit(page, 'team')
    await page.getByRole('heading', { name: 'Team' }).waitFor()
    await visit(page, 'agents/Talker')
    await shownText('red <b>bold</b>', page.locator('.xterm-rows'))
    expect(await page.locator('.xterm a, .xterm b, .xterm-underline-1, .xterm [href]').count()).toBe(0)
    expect(await page.title()).not.toContain('owned')
    await visit(page, 'agents/Talker?tab=transcript')
    await shownText('red <b>bold</b>', page.locator('.said'))
    expect(window.complaints).toEqual([])
  })

  it.each(cases)(
    'is shown as text in a run: its log, summary, files and reasons: %s',
    async (hostile, index) => {
      const name = `outbox/${asName(hostile)}`
      const at = (query: Record<string, string>) => visit(page, `runs/${run}?${new URLSearchParams(query)}`)
      const aside = page.locator('.aside')
      await at({ node: `made${index}` })
      await shownText(hostile, aside.locator('> pre.block'))
      await shownText(name, aside.locator('a code'))
      await at({ node: `made${index}`, log: '1' })
      await shownText(hostile, aside.locator('pre.log'))
      await at({ node: `made${index}`, output: name })
      await shownText(hostile, aside.locator('pre.log'))
      await shownText(name, aside.locator('.section'))
      await at({ node: `failed${index}`, log: '1' })
      await shownText(hostile, aside.locator('pre.log'))
      await shownText(hostile, aside.locator('dl'))
      expect(window.complaints).toEqual([])
    },
  )

  it.each(cases)('is shown as text in the evidence of a task: %s', async (hostile, index) => {
    const delegated = await master.command({
      ...{ type: 'delegate', to: 'Worker', task: hostile, checks: `check${index}` },
    })
    const task = delegated.status === 'ok' ? String(delegated.details?.task_id) : ''
    await worker.command({ type: 'report', status: 'completed', in_response_to: task, result: hostile })
    await until(async () => (await team.client.task(task)).ended_at !== undefined)
    await visit(page, `tasks/${task}?show=all`)
    const aside = page.locator('.aside')
    await shownText(hostile, aside.locator('h2'))
    await shownText(hostile, aside.locator('pre.block'))
    await shownText(`check${index} passed (exit code 0)\n${hostile}`, aside.locator('.steps').first())
    await visit(page, 'agents/Worker?tab=tasks')
    await shownText(hostile, page.locator('a.line', { hasText: task }))
    expect(window.complaints).toEqual([])
  })

  it.each(cases)('is shown as text in a dialog, also after the decision: %s', async (hostile) => {
    await visit(page, 'audit')
    await page.getByRole('heading', { name: 'Audit' }).waitFor()
    await worker.command({
      ...{ type: 'request_user_input', question: hostile, context: hostile, choices: [hostile, 'no'] },
    })
    const dialog = page.getByRole('dialog', { name: 'Worker asks' })
    for (const part of ['.request-question', '.choices']) await shownText(hostile, dialog.locator(part))
    await dialog.getByRole('button', { name: 'Answer', disabled: false }).waitFor()
    await page.keyboard.press('1')
    await dialog.waitFor({ state: 'detached' })
    const asked = (await team.client.humanRequests({ state: 'all' })).requests.findLast(({ question }) =>
      question.includes(hostile),
    )!
    expect(asked.state).not.toBe('open')
    await visit(page, 'inbox?show=past')
    await shownText(hostile, page.locator('a.line', { hasText: asked.decided_by! }).first())
    await visit(page, `inbox/${asked.id}`)
    await shownText(hostile, page.getByRole('article', { name: /asked by Worker/ }))
    const held = await worker.command({
      ...{ type: 'request_action', action: 'terminate_agent', target: 'Master', reason: hostile },
    })
    expect(held.status).toBe('held')
    const id = held.status === 'held' ? held.request_id : ''
    await visit(page, `inbox/${id}`)
    const card = page.getByRole('article', { name: new RegExp(`^${id},`) })
    await card.getByRole('button', { name: 'Edit', disabled: false }).click()
    const field = card.locator('.edit label', { hasText: /^reason/ }).locator('textarea')
    expect(await field.inputValue()).toBe(hostile)
    await team.client.decide(id, { decision: 'reject', comment: 'no' })
    await visit(page, `inbox/${id}?show=past`)
    await card.getByText('rejected').waitFor()
    // Invisible characters show their code point, because a person decides on this text.
    await shownText(showInvisible(hostile), card)
    expect(window.complaints).toEqual([])
  })

  it('is shown as text in an entry of the audit', async () => {
    for (const hostile of CORPUS) {
      await worker.command({ type: 'send_message', to: 'Master', title: hostile, content: hostile })
      for await (const { seq, text } of team.client.audit({ type: 'message.accepted', limit: 1 })) {
        expect(text).toContain(hostile)
        await visit(page, `audit/${seq}`)
        await shownText(text, page.locator('.aside > p'))
      }
    }
    expect(window.complaints).toEqual([])
  })

  it('would be found if it were rendered as HTML', async () => {
    for (const hostile of CORPUS.filter((text) => text.includes('<'))) {
      const { page: blank } = await openWindow()
      await recordReports(blank)
      await blank.goto('data:text/html,<main></main>')
      expect(await harmIn(blank)).toEqual([])
      await blank.evaluate((html) => {
        document.body.innerHTML = `<main><p>${html}</p></main>`
      }, hostile)
      expect(await harmIn(blank), hostile).not.toEqual([])
    }
  })

  it('is shown as text in a conduct flag (S3.15)', async () => {
    await team.orchub.engine.store.write(async (tx) => {
      for (const [index, hostile] of CORPUS.entries())
        await insertConduct(tx, {
          ...{ id: `flag-${index}`, repository: 'o/r', number: index + 1 },
          flag: JSON.stringify({ evidence: hostile, [hostile]: { in: [hostile] } }),
        })
    })
    const { page: seen, complaints } = await open({ person: 'mo', prepare: recordReports })
    const look = async (place: string) => {
      await visit(seen, place)
      for (const [index, hostile] of CORPUS.entries()) {
        const card = seen.locator('article.request', { hasText: `o/r#${index + 1}` })
        await card.first().waitFor()
        expect(bare(await card.first().innerText()).split(bare(hostile)).length, place).toBeGreaterThan(2)
      }
      expect(await harmIn(seen), place).toEqual([])
    }
    await look('moderation')
    await seen.getByRole('button', { name: 'Uphold' }).first().click()
    await seen.getByText('Flag upheld.').waitFor()
    await look('moderation?show=all')
    expect(complaints).toEqual([])
  })
})

/** A shell command that prints a text file as a JSON string. */
const JSON_TEXT = (file: string) =>
  `printf '"'; head -c -1 ${file} | sed -e 's/\\\\/\\\\\\\\/g' -e 's/"/\\\\"/g'; printf '"'`
