import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { AppError } from '../../src/base/errors.ts'
import { canBrowse } from './browser.ts'
import { enter, useControlRoom } from './control-room.ts'
import { writeGithubFixture } from './github-fixture.ts'
import { tooWide, until, violations, visit } from './page.ts'
import { startTeam, type TestTeam } from './team.ts'

const PLAN = `agents:
  first: { command: "echo a line of the log; echo made by first > outbox/x.txt; echo Done. > outbox/summary.md" }
  second: { command: "cat inbox/first/x.txt; exit 3", depends_on: [first], retries: 0 }
`

describe.skipIf(!canBrowse)('the views of the control room', { timeout: 120_000 }, () => {
  let team: TestTeam
  let folder: string
  let run: string

  const { open, openWindow } = useControlRoom(async () => {
    folder = mkdtempSync(join(tmpdir(), 'orchub-views-'))
    mkdirSync(join(folder, 'plan'))
    team = await startTeam(
      {
        Master: { more: { role: 'plans' }, script: [] },
        Worker: { more: { parent: 'Master', role: 'works' }, script: [] },
      },
      { people: { mo: { role: 'moderator' } }, limits: { rate: 'off' } },
    )
    run = (await team.client.startRun({ plan: PLAN, folder: join(folder, 'plan') })).run_id
    await writeGithubFixture(team.orchub.engine.store)
    await team.client.command({ type: 'send_message', to: 'Worker', title: 'Hello', content: 'A word' })
    await until(async () => (await team.client.run(run)).state !== 'running')
    return team
  })
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true })
  })

  /** Every address of the page, and a text that it shows. */
  const places = (): [place: string, words: RegExp][] => [
    ['team', /Worker/],
    ['team?as=list', /Worker/],
    ['inbox', /Nothing needs your attention|Reason:/],
    ['inbox?show=past', /No decisions yet/],
    ['agents/Worker', /Take over/],
    ['agents/Worker?tab=transcript', /A word/],
    ['agents/Worker?tab=mail', /operator → Worker/],
    ['agents/Worker?tab=mail&message=msg_1', /stored in the mailbox/],
    ['agents/Worker?tab=prompt', /Worker/],
    ['tasks', /No open tasks/],
    ['conversations', /Worker/],
    ['conversations/msg_1?as=thread', /stored in the mailbox/],
    ['rules?from=Worker&to=Master', /decided by/],
    ['audit', /message\.accepted/],
    ['audit/1', /Hash/],
    ['metrics?span=15m', /Time until read/],
    [`runs/${run}?node=first&log=1`, /a line of the log/],
    [`runs/${run}?node=first&output=outbox%2Fx.txt`, /^made by first\s*$/],
    ['github', /apply the label 'bug' to #7/],
    ['github/key-1', /Decide \(req_3\)/],
    ['github/delivery-2?show=events', /Scribe/],
  ]

  it.each([
    ['dark', 1280],
    ['light', 360],
  ] as const)(
    'show every address in %s at %i px, without errors of axe or the CSP, and no wider than the window (S2.16, S1.14)',
    async (theme, width) => {
      const { page, complaints } = await open({ theme, width, height: 760 })
      for (const [place, words] of places()) {
        await visit(page, place)
        await page.getByText(words).first().waitFor({ state: 'attached' })
        await page.getByRole('heading', { level: 1 }).waitFor()
        expect(await tooWide(page), `${place} is wider than the window`).toEqual([])
        expect(await violations(page), place).toEqual([])
      }
      expect(complaints).toEqual([])
    },
  )

  it('open an address in a new window that is signed in', async () => {
    const { context } = await open()
    const other = await context.newPage()
    await other.goto(`${team.url}/#/runs/${run}?node=second`)
    await other
      .getByText(/exit.* 3\b/)
      .first()
      .waitFor()
  })

  it('resume a run that has ended, without running completed agents again', async () => {
    const { page } = await open()
    await visit(page, `runs/${run}`)
    await page.getByRole('button', { name: 'Resume run' }).click()
    await page.getByText('round 2').first().waitFor()
    await until(async () => (await team.client.run(run)).state !== 'running')
    const first = (await team.client.run(run)).nodes.find(({ name }) => name === 'first')
    expect(first?.cached).toBe(true)
  })

  it('show what blocks a run, although no event reports it', async () => {
    const plans = join(folder, 'stuck')
    mkdirSync(plans)
    const plan =
      'agents: { a: { command: "until test -e ../../../enough; do sleep 0.05; done; exit 3", retries: 0 } }'
    const { run_id } = await team.client.startRun({ plan, folder: plans })
    await until(async () => (await team.client.run(run_id)).nodes[0]?.state === 'running')
    const { page } = await open()
    await visit(page, `runs/${run_id}`)
    await page.getByText('0 of 1').first().waitFor()
    const { store } = team.orchub.engine
    const { write } = store
    const trouble = page.getByText('the disk is full: the run waits for free space')
    try {
      store.write = () => Promise.reject(new AppError('STORE_FULL', 'No space left'))
      writeFileSync(join(plans, 'enough'), '')
      await trouble.waitFor()
      expect(await tooWide(page)).toEqual([])
      await visit(page, 'runs')
      await trouble.waitFor()
    } finally {
      store.write = write
    }
    await trouble.waitFor({ state: 'detached' })
    await until(async () => (await team.client.run(run_id)).state !== 'running')
  })

  it('explain in two lines how to fill an empty view', async () => {
    const bare = await startTeam({ Alone: { script: [] } })
    try {
      const { page } = await openWindow()
      await enter(page, await bare.link())
      for (const [place, words] of [
        ['github', /Add github: with your repositories to orc\.yaml/],
        ['runs', /orc run plan\.yaml/],
        ['tasks', /orc ask/],
      ] as const) {
        await visit(page, place)
        const lines = page.locator('.empty-text p')
        await lines.filter({ hasText: words }).waitFor()
        expect(await lines.count()).toBeLessThanOrEqual(2)
      }
    } finally {
      await bare.close()
    }
  })

  it('work with the keyboard alone: views, tabs, a message, and back', async () => {
    const { page } = await open()
    await page.keyboard.press('g')
    await page.keyboard.press('u')
    await page.getByRole('heading', { name: 'Rules' }).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    await page.keyboard.press('Escape')
    await visit(page, 'agents/Worker?tab=mail')
    await page.getByRole('tab', { name: 'Messages' }).focus()
    await page.keyboard.press('ArrowRight')
    await page.getByRole('tab', { name: 'Tasks', selected: true }).waitFor()
    await page.keyboard.press('c')
    const dialog = page.getByRole('dialog', { name: 'Write a message' })
    await dialog.getByLabel('To', { exact: true }).focus()
    await page.keyboard.type('Master')
    await dialog.getByLabel('Message', { exact: true }).focus()
    await page.keyboard.type('By hand')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    await until(async () =>
      (await team.client.messages({ agent: 'Master' })).messages.some(({ content }) => content === 'By hand'),
    )
  })

  it('show conduct flags, and even their number, to moderators only (S3.15)', async () => {
    const { page: hers } = await open({ person: 'mo' })
    await hers.getByRole('link', { name: 'Moderation' }).click()
    await hers.getByText('a rude word').waitFor()
    await hers.getByRole('button', { name: 'Dismiss' }).click()
    await hers.getByText('No flags').waitFor()

    const { page } = await open()
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    await visit(page, 'moderation')
    await page.getByRole('heading', { name: 'Team' }).waitFor()
    for (const place of ['github', 'github?show=events', 'audit', 'metrics']) {
      await visit(page, place)
      await page.waitForTimeout(300)
      expect(await page.locator('body').innerText()).not.toMatch(/rude|conduct|moderat|flag/i)
    }
    expect(await page.getByRole('link', { name: 'Moderation' }).count()).toBe(0)
    expect(asked.filter((url) => url.includes('moderation'))).toEqual([])
    const status = await page.evaluate(async () => {
      const headers = { 'x-orc-session': localStorage.getItem('orchub.session')! }
      return (await fetch('/api/v1/moderation', { headers })).status
    })
    expect(status).toBe(404)
  })
})
