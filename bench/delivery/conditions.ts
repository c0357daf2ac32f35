/** Disturbances of a receiver while messages are on their way to it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { attachPerson, type Person } from '../../tests/fakes/person-at-terminal.ts'
import { LARGE } from './messages.ts'
import type { Scene } from './scene.ts'

/** Long enough for a message to arrive if nothing delays it. */
const WAIT_MS = 120
/** While a person types, nothing may be written for two seconds and a margin. */
const PERSON_WAIT_MS = 60_000

export interface Circumstance {
  /** Dialogs that the bench's person answered. */
  readonly answers: number
}

type Condition = (scene: Scene) => Promise<Circumstance>

const QUIET: Circumstance = { answers: 0 }
const draft = () => `half a thought ${Math.floor(Math.random() * 1e6)}`

export const CONDITIONS: Readonly<Record<string, Condition>> = {
  /** Typed before the message comes, erased when it has had its chance to do harm. */
  async 'a draft in the input box'(scene) {
    await scene.tmux('send-keys', '-t', scene.pane, '-l', draft())
    await sleep(30)
    const said = await scene.say('after the draft')
    await sleep(WAIT_MS)
    await scene.tmux('send-keys', '-t', scene.pane, 'C-u')
    await scene.arrived(said)
    return QUIET
  },
  async 'copy mode'(scene) {
    await scene.tmux('copy-mode', '-t', scene.pane)
    const said = await scene.say('after copy mode')
    await sleep(WAIT_MS)
    await scene.tmux('send-keys', '-X', '-t', scene.pane, 'cancel')
    await scene.arrived(said)
    return QUIET
  },
  /** Opened at a random time around the write. */
  async 'copy mode at a random moment'(scene) {
    const said = await scene.say('around copy mode')
    await sleep(Math.random() * 10)
    await scene.tmux('copy-mode', '-t', scene.pane)
    await sleep(WAIT_MS)
    await scene.tmux('send-keys', '-X', '-t', scene.pane, 'cancel').catch(() => {})
    await scene.arrived(said)
    return QUIET
  },
  async 'an open dialog'(scene) {
    await scene.arrived(await scene.say('ask'))
    const said = await scene.say('after the dialog', 'and another one')
    await sleep(WAIT_MS)
    await scene.tmux('send-keys', '-t', scene.pane, 'y')
    await scene.arrived(said)
    return { answers: 1 }
  },
  async 'a busy receiver'(scene) {
    const first = await scene.say('work 150')
    await sleep(10)
    const second = await scene.say('while it works', 'and again')
    await scene.arrived(first)
    await scene.arrived(second)
    return QUIET
  },
  async 'twenty at once'(scene) {
    const contents = Array.from({ length: 20 }, (_, index) => `of a burst, ${index}`)
    await scene.arrived(await scene.say(...contents))
    return QUIET
  },
  async '100 KB'(scene) {
    await scene.arrived(await scene.say(LARGE))
    return QUIET
  },
  /** The program lost the Enter: the text stays in its box, not submitted. */
  async 'a swallowed Enter'(scene) {
    await scene.arrived(await scene.say('swallow'))
    await scene.arrived(await scene.say('after the swallowed one'))
    return QUIET
  },
  /** A person types at their own terminal, at a random time around the write. */
  async 'a person who types'(scene) {
    const person = await attach(scene)
    const said = await scene.say('while a person types')
    await sleep(Math.random() * 80)
    person.type(draft())
    await sleep(400)
    // Their whole line, whether our message came before it or still waits.
    person.type('\u0015')
    await scene.arrived(said, PERSON_WAIT_MS)
    person.leave()
    await sleep(50)
    return QUIET
  },
}

/** Deliveries of that kind per thousand; those that involve a person take seconds each. */
export const PER_THOUSAND: Readonly<Record<keyof typeof CONDITIONS, number>> = {
  'a draft in the input box': 5,
  'copy mode': 5,
  'copy mode at a random moment': 5,
  'an open dialog': 5,
  'a busy receiver': 5,
  'twenty at once': 3,
  '100 KB': 2,
  'a swallowed Enter': 0.5,
  'a person who types': 1,
}

async function attach({ socket, tmux, pane }: Scene): Promise<Person> {
  const format = '#{session_name}:#{window_id}.#{pane_id}'
  return await attachPerson(socket, await tmux('display-message', '-p', '-t', pane, format))
}
