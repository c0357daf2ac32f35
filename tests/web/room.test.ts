import axe from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { canBrowse, openBrowser, openWindow, type Window } from './browser.ts'
import { type RoomTeam, say, startTeam } from './team.ts'

const ASK =
  '<orc-command name="request_user_input" choices="Vienna, Graz" context="The train leaves from there">Where do you start?</orc-command>'

const CORPUS = [
  '<img src=x onerror="window.owned=1">',
  '"><script>window.owned=1</script>',
  "javascript:window.owned=1//'-window.owned-'",
  '<svg/onload=window.owned=1>{{constructor}}',
]

describe.skipIf(!canBrowse)('the control room in a browser', { timeout: 90_000 }, () => {
  let browser: Browser
  let team: RoomTeam

  beforeAll(async () => {
    browser = await openBrowser()
    team = await startTeam(
      {
        Master: {
          more: { role: 'plans' },
          script: [
            { on: { text: 'Title: Ask' }, after_ms: 50, say: ASK },
            { on: { text: 'Vienna' }, after_ms: 50, say: say('Worker', 'From Vienna', 'I was told Vienna.') },
          ],
        },
        Worker: {
          more: { parent: 'Master', role: 'works', permissions: { terminate_agent: 'ask' } },
          script: [
            {
              on: { text: 'Title: End it' },
              after_ms: 50,
              say: '<orc-command name="request_action" action="terminate_agent" target="Other" reason="its work is done"/>',
            },
          ],
        },
        Other: {
          more: { parent: 'Master' },
          script: [{ on: { text: 'never said' }, after_ms: 0, say: 'Nothing.' }],
        },
      },
      { people: { vera: { role: 'viewer' } }, limits: { rate: 'off', hops: 'off', ping_pong: 'off' } },
    )
    for (const name of ['Master', 'Worker', 'Other'])
      await until(async () => (await stateOf(name)) === 'idle')
    await send('Worker', 'Hello', 'A word from a person')
  })
  afterAll(async () => {
    await browser?.close()
    await team?.close()
  })

  const stateOf = async (name: string) =>
    (await team.client.agents()).agents.find((agent) => agent.name === name)?.session
  const send = (to: string, title: string, content: string) =>
    team.client.command({ type: 'send_message', to, title, content })
  const enter = async (window: Window, person?: string) => {
    await window.page.goto(await team.link(person))
    await window.page.getByRole('navigation', { name: 'Views' }).waitFor()
    return window.page
  }
  const visit = (page: Page, place: string) =>
    page.evaluate((hash) => {
      location.hash = hash
    }, `#/${place}`)

  const VIEWS: [place: string, words: RegExp][] = [
    ['team', /Worker/],
    ['team?as=list', /Worker/],
    ['inbox', /Nobody waits for you|Approve|Answer/],
    ['agents/Worker', /Take over/],
    ['agents/Worker?tab=mail', /operator → Worker/],
    ['tasks', /No open tasks/],
    ['conversations', /Worker/],
    ['rules?from=Worker&to=Master', /decided by/],
    ['audit', /message\.accepted/],
    ['metrics?span=15m', /Time until read/],
    ['runs', /orc run plan\.yaml/],
    ['github', /orc\.yaml/],
  ]

  it.each([
    ['dark', 1280],
    ['light', 360],
  ] as const)(
    'shows each view in %s at %i px, without a complaint of axe or the CSP (S2.16, S1.14)',
    async (theme, width) => {
      const window = await openWindow(browser, { theme, width, height: 760 })
      const page = await enter(window)
      for (const [place, words] of VIEWS) {
        await visit(page, place)
        await page.getByText(words).first().waitFor({ state: 'attached' })
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
        expect(wide, `${place} is wider than the window`).toBeLessThanOrEqual(0)
        expect(await violations(page), place).toEqual([])
      }
      expect(window.complaints).toEqual([])
      await window.context.close()
    },
  )

  it('puts a question before the person as a modal; the answer reaches the agent, which goes on (S2.16)', async () => {
    const window = await openWindow(browser)
    const page = await enter(window)
    await visit(page, 'audit')
    await page.getByRole('heading', { name: 'Audit' }).waitFor()
    await send('Master', 'Ask', 'Ask me where I start.')
    const dialog = page.getByRole('dialog', { name: 'Master asks' })
    await dialog.getByText('Where do you start?').waitFor()
    // What comes up by itself takes no key at once: it may have been meant for something else.
    await page.keyboard.press('1')
    expect(await dialog.count()).toBe(1)
    await dialog.getByRole('button', { name: 'Answer', disabled: false }).waitFor()
    await page.keyboard.press('1')
    await dialog.waitFor({ state: 'detached' })
    await until(async () =>
      (await team.client.messages({ agent: 'Worker' })).messages.some(({ title }) => title === 'From Vienna'),
    )
    expect(window.complaints).toEqual([])
    await window.context.close()
  })

  it('takes an approval from a window of the size of a phone, and shows it in another at once', async () => {
    const phone = await openWindow(browser, { width: 360, height: 740 })
    const desk = await openWindow(browser)
    const [small, large] = [await enter(phone), await enter(desk)]
    await visit(small, 'inbox')
    await visit(large, 'inbox')
    await send('Worker', 'End it', 'Please.')
    const card = small.getByRole('article', { name: /asked by Worker/ })
    await card.getByText('terminate_agent').first().waitFor()
    await large.getByRole('article', { name: /asked by Worker/ }).waitFor()
    await card.getByRole('button', { name: 'Approve' }).click()
    await card.waitFor({ state: 'detached' })
    await large.getByRole('article', { name: /asked by Worker/ }).waitFor({ state: 'detached' })
    await until(async () => (await stateOf('Other')) === 'exited')
    await Promise.all([phone.context.close(), desk.context.close()])
  })

  it('types into a terminal only when it was taken over; a delivery waits for that, and comes after (C2, C27)', async () => {
    const window = await openWindow(browser)
    const page = await enter(window)
    await visit(page, 'agents/Master')
    await page.getByRole('button', { name: 'Take over' }).click()
    await page.getByText('You have taken over').waitFor()
    await page.keyboard.type('a draft of mine')
    await until(async () => (await team.client.terminal('Master')).screen.includes('a draft of mine'))
    const receipt = await send('Master', 'Waits', 'While somebody types')
    const id = receipt.status === 'delivered' ? receipt.message_id : ''
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect((await team.client.terminal('Master')).screen).not.toContain(`got ${id}`)
    expect(['queued', 'written']).toContain((await team.client.message(id)).delivery)
    for (let key = 0; key < 'a draft of mine'.length; key++) await page.keyboard.press('Backspace')
    await page.getByRole('button', { name: 'Let go' }).click()
    await until(async () => (await team.client.message(id)).delivery === 'read')
    expect(window.complaints).toEqual([])
    await window.context.close()
  })

  it('stops everything and lets it go on, from any view', async () => {
    const window = await openWindow(browser)
    const page = await enter(window)
    await page.getByRole('button', { name: 'Stop all' }).click()
    await page.keyboard.type('too many at once')
    await page.keyboard.press('Enter')
    await page.getByText('Everything is stopped', { exact: true }).waitFor()
    expect((await team.client.state()).halt?.reason).toBe('too many at once')
    await page.getByRole('button', { name: 'Go on' }).click()
    await page.getByText('Everything is stopped', { exact: true }).waitFor({ state: 'detached' })
    expect((await team.client.state()).halt).toBeUndefined()
    await window.context.close()
  })

  it('lets a viewer look and nothing else', async () => {
    const window = await openWindow(browser)
    const page = await enter(window, 'vera')
    await page.getByText('read only').waitFor()
    expect(await page.getByRole('button', { name: 'Stop all' }).count()).toBe(0)
    await visit(page, 'agents/Worker')
    await page.getByRole('region', { name: 'Terminal of Worker' }).waitFor()
    expect(await page.getByRole('button', { name: 'Take over' }).count()).toBe(0)
    const status = await page.evaluate(async () => {
      const headers = {
        'content-type': 'application/json',
        'x-orc-session': localStorage.getItem('orchub.session')!,
      }
      return (await fetch('/api/v1/halt', { method: 'POST', headers, body: '{}' })).status
    })
    expect(status).toBe(403)
    await window.context.close()
  })

  it('shows that the connection is lost, and comes back without a gap or a double', async () => {
    const window = await openWindow(browser)
    const page = await enter(window)
    await visit(page, 'conversations?as=thread')
    await page.getByText('live', { exact: true }).waitFor()
    await team.stop()
    await page.getByText('connection lost').waitFor()
    await team.start()
    await send('Worker', 'After the storm', 'One')
    await page.getByText('live', { exact: true }).waitFor()
    await page.getByText('After the storm').waitFor()
    expect(await page.getByText('After the storm').count()).toBe(1)
    await window.context.close()
  })

  it('ends with the token of its session, at once', async () => {
    const window = await openWindow(browser)
    const page = await enter(window)
    const session = (await team.client.tokens()).tokens.findLast(
      ({ expires_at }) => expires_at !== undefined,
    )!
    await team.client.revokeTokens(session.id)
    await page.getByText('Your session has ended.').waitFor()
    await page.reload()
    await page.getByText('orc open', { exact: true }).waitFor()
    await window.context.close()
  })

  it('signs in once with a link, and not a second time', async () => {
    const link = await team.link()
    const first = await openWindow(browser)
    await first.page.goto(link)
    await first.page.getByRole('navigation', { name: 'Views' }).waitFor()
    expect(first.page.url()).not.toContain('login')
    const second = await openWindow(browser)
    await second.page.goto(link)
    await second.page.getByText('used before').waitFor()
    await Promise.all([first.context.close(), second.context.close()])
  })

  it.each(CORPUS)('shows %s as text wherever an agent can write it', async (hostile) => {
    const window = await openWindow(browser)
    const page = await enter(window)
    const token = (await team.client.mintToken('Worker')).token
    const { createClient } = await import('../../src/client/client.ts')
    const agent = createClient({ url: team.url, token })
    await agent.command({ type: 'update_status', status: 'working', current_task: hostile })
    await agent.command({ type: 'send_message', to: 'Master', title: hostile, content: hostile })
    await agent.command({
      type: 'request_user_input',
      question: hostile,
      context: hostile,
      choices: [hostile, 'no'],
    })
    const request = (await team.client.humanRequests()).requests.at(-1)!
    const mail = (await team.client.messages({ agent: 'Worker' })).messages.at(-1)!
    for (const place of [
      'team',
      'inbox',
      'agents/Worker',
      `conversations/${mail.id}`,
      'audit',
      `agents/Worker?tab=mail&message=${mail.id}`,
    ]) {
      await visit(page, place)
      await page.getByText(hostile, { exact: false }).first().waitFor({ state: 'attached' })
    }
    expect(await page.evaluate(() => (window as { owned?: unknown }).owned)).toBeUndefined()
    expect(window.complaints).toEqual([])
    await team.client.decide(request.id, { decision: 'answer', comment: 'no', insist: true })
    await window.context.close()
  })
})

async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  return await page.evaluate(async () => {
    const run = (
      window as unknown as {
        axe: {
          run(
            context: object,
          ): Promise<{ violations: { id: string; nodes: { target: unknown; failureSummary?: string }[] }[] }>
        }
      }
    ).axe
    // What is in a terminal has the colours that the agent's program gave it.
    const { violations: found } = await run.run({ exclude: ['.xterm'] })
    return found.map(
      ({ id, nodes }) =>
        `${id}: ${nodes.map(({ target, failureSummary }) => `${JSON.stringify(target)} ${failureSummary ?? ''}`).join('; ')}`,
    )
  })
}

async function until(fits: () => Promise<boolean>, ms = 20_000): Promise<void> {
  const deadline = Date.now() + ms
  while (!(await fits())) {
    if (Date.now() > deadline) throw new Error('It did not come to be')
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
