import { mkdir, rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AgentName } from '../../../scripts/install-agents.ts'
import { type KillableTeam, type Noted, openKillableTeam } from '../harness/killable-team.ts'
import { createModelScript } from '../harness/model-script.ts'

const telling = (title: string) => `I tell Bob of what is ${title}.`
const toBob = (title: string) =>
  `${telling(title)}\n<orc-command name="send_message" to="Bob" title="${title}">It is done.</orc-command>`

/** One file per program, so that they run in parallel. */
export function describeSurvival(program: AgentName) {
  describe(`${program} survives`, () => {
    const script = createModelScript()
    let team: KillableTeam

    beforeAll(async () => {
      team = await openKillableTeam({ programs: { Alice: program, Bob: program }, play: script.play })
      await Promise.all([team.becomes('Alice', 'idle'), team.becomes('Bob', 'idle')])
    })
    afterAll(async () => {
      await team?.close()
    })

    const alice = () => team.received('Alice')

    /** Every message was read and is in the conversation once. */
    async function expectRead(...ids: string[]) {
      for (const id of ids) await team.reaches(id, 'read')
      await team.becomes('Alice', 'idle')
      for (const id of ids) expect(alice().times(id), `${id}: ${alice().history(id)}`).toBe(1)
    }

    /** Waits until Alice's pane shows the text, even while the service is down. */
    const expectSeen = (words: string) =>
      team.until(`Alice's screen shows "${words}"`, async () => (await team.screen('Alice')).includes(words))

    /** Checks that the agent's text reached Bob exactly once. */
    async function expectHeard(title: string) {
      const mail = await team.until(`Bob has ${title}`, async () =>
        (await team.mailOf('Bob')).find((one) => one.title === title),
      )
      await team.reaches(mail.id, 'read')
      expect((await team.mailOf('Bob')).filter((one) => one.title === title)).toHaveLength(1)
      expect(team.received('Bob').times(mail.id)).toBe(1)
    }

    it('a kill of the service while a message waits for a busy agent; text written meanwhile is read', async () => {
      const goOn = script.hold('be busy')
      const first = await team.send('Alice', 'be busy')
      await alice().message(first)
      const second = await team.send('Alice', 'when you are done')
      await team.daemon.kill()
      goOn({ text: toBob('said while away') })
      await expectSeen(telling('said while away'))
      await team.daemon.start()
      await expectRead(first, second)
      await expectHeard('said while away')
    })

    it('a kill of the service at any moment of a delivery', async () => {
      const ids: string[] = []
      for (const most of [5, 40, 150, 400]) {
        ids.push(await team.send('Alice', `in the middle of it, within ${most} ms`))
        await sleep(Math.random() * most)
        await team.daemon.kill()
        await team.daemon.start()
      }
      await expectRead(...ids)
    })

    it('a kill of the service between the paste and its evidence, with the agent suspended; others continue', async () => {
      await team.signal('Alice', 'SIGSTOP')
      const id = await team.send('Alice', 'you cannot hear this yet')
      await team.reaches(id, 'written')
      await sleep(700)
      await team.daemon.kill()
      await team.daemon.start()
      const other = await team.send('Bob', 'but you can')
      await team.reaches(other, 'read')
      await team.signal('Alice', 'SIGCONT')
      await expectRead(id)
    })

    it('a kill of the service after the agent accepted a message', async () => {
      const goOn = script.hold('think about it')
      const id = await team.send('Alice', 'think about it')
      await team.reaches(id, 'submitted')
      await alice().message(id)
      await team.daemon.kill()
      await team.daemon.start()
      goOn({ text: 'I have thought.' })
      await expectRead(id)
    })

    it('a kill of the service while the agent answers; its text is read once', async () => {
      // Repeated words are taken for a loop.
      const words = Array.from({ length: 40 }, (_, index) => `step-${index * 7919}`).join(' ')
      const text = `${words}\n${toBob('said in the middle')}`
      script.answer('speak slowly', { text, chunkSize: 20, chunkMs: 60 })
      const id = await team.send('Alice', 'speak slowly')
      const call = await alice().message(id)
      await sleep(Math.random() * 600)
      await team.daemon.kill()
      await team.until('the model has answered', () => call.state === 'answered')
      await team.daemon.start()
      await expectRead(id)
      await expectHeard('said in the middle')
    })

    it('a kill of the service while all are idle, and a person continues with the agent', async () => {
      await team.becomes('Alice', 'idle')
      await team.daemon.kill()
      script.answer('a word from the person', { text: toBob('said to a person') })
      await team.type('Alice', 'a word from the person')
      await alice().text('a word from the person')
      await expectSeen(telling('said to a person'))
      await team.daemon.start()
      await expectHeard('said to a person')
      await expectRead(await team.send('Alice', 'still with us?'))
    })

    it.each([
      ['its pane is closed', () => team.tmux('kill-pane', '-t', team.savedState('Alice').pane)],
      ['its process is killed', () => process.kill(team.savedState('Alice').process.pid, 'SIGKILL')],
    ])('in its conversation when %s: it is reported, and no other agent is harmed', async (_, kill) => {
      await expectRead(await team.send('Alice', 'the word is xylophone'))
      await kill()
      await team.becomes('Alice', 'exited')
      await team.until('nothing of Alice runs', async () => (await team.processes('Alice')).length === 0)
      const id = await team.send('Alice', 'which word was it?')
      await team.reaches(await team.send('Bob', 'are you well?'), 'read')
      await team.act('spawn_agent', 'Alice')
      await expectRead(id)
      expect((await alice().message(id)).body).toContain('the word is xylophone')
    })

    it('with its conversation and its undelivered messages when everything is killed', async () => {
      const goOn = script.hold('the number is 42')
      const first = await team.send('Alice', 'the number is 42')
      await alice().message(first)
      const second = await team.send('Alice', 'which number was it?')
      await team.killAll()
      goOn({ text: 'Nobody hears this.' })
      await team.daemon.start()
      await Promise.all([team.becomes('Alice', 'idle'), team.becomes('Bob', 'idle')])
      await team.reaches(second, 'read')
      const { body } = await alice().message(second)
      expect(body).toContain('the number is 42')
      expect(body).toContain('the word is xylophone')
      await team.becomes('Alice', 'idle')
      expect(alice().times(second)).toBe(1)
      expect(alice().times(first)).toBe(1)
    })

    it('the end of the tmux server, with all conversations', async () => {
      await team.tmux('kill-server')
      await Promise.all([team.becomes('Alice', 'exited'), team.becomes('Bob', 'exited')])
      const id = await team.send('Alice', 'and now?')
      await Promise.all([team.act('spawn_agent', 'Alice'), team.act('spawn_agent', 'Bob')])
      await expectRead(id)
      expect((await alice().message(id)).body).toContain('the word is xylophone')
      await team.becomes('Bob', 'idle')
    })

    /** Alice cannot start: her state and the audit say why, Bob works, and a reset helps. */
    async function expectClearFailure(words: RegExp) {
      const before = team.audit().length
      await team.daemon.start()
      const isFailure = ({ actor, text }: Noted) => actor === 'Alice' && / is (?:error|exited): /.test(text)
      const told = await team.until('the failure is told', () => team.audit().slice(before).find(isFailure))
      expect(told.text).toMatch(words)
      await team.reaches(await team.send('Bob', 'is all well with you?'), 'read')
      await team.act('reset_session', 'Alice')
      await expectRead(await team.send('Alice', 'a new beginning'))
    }

    it('a conversation that no longer exists, which it reports', async () => {
      await team.becomes('Alice', 'idle')
      await team.killAll()
      team.change('Alice', (savedState) =>
        JSON.parse(
          JSON.stringify(savedState)
            .replace(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, '00000000-0000-4000-8000-000000000000')
            .replace(/ses_\w+/g, 'ses_00000000000000000000000000'),
        ),
      )
      await expectClearFailure(/conversation|session/i)
    })

    it.skipIf(program === 'opencode')(
      'a transcript that cannot be read, which it says clearly (opencode has none)',
      async () => {
        await team.killAll()
        const savedState = team.savedState('Alice').program as Transcribed
        const file = savedState.transcript ?? savedState.threads!.at(-1)!.rollout
        await rm(file)
        await mkdir(file)
        await expectClearFailure(/transcript|conversation|resume session/i)
      },
    )
  })
}

interface Transcribed {
  readonly transcript?: string
  readonly threads?: readonly { readonly rollout: string }[]
}
