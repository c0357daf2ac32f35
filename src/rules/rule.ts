/** What a rule says: carry it out, refuse it, or hold it until a person has decided (C15). */
export const VERDICTS = ['allow', 'deny', 'ask'] as const
export type Verdict = (typeof VERDICTS)[number]

/** Who may write to whom when no rule says otherwise (C24). */
export const PRESETS = ['mesh', 'tree', 'hub', 'isolated'] as const
export type Preset = (typeof PRESETS)[number]

/**
 * Everything an agent needs a permission for (S1.19), and what holds when orc.yaml is silent. A new action is
 * one entry here: the config schema, the rules and `orc rules explain` follow.
 */
export const ACTIONS = {
  spawn_agent: { silent: 'deny', summary: 'start a configured agent' },
  terminate_agent: { silent: 'deny', summary: 'end an agent' },
  reset_session: { silent: 'deny', summary: "reset an agent's session" },
  pause_session: { silent: 'deny', summary: "pause an agent's session" },
  resume_session: { silent: 'deny', summary: "resume an agent's session" },
  urgent: { silent: 'deny', summary: "send urgent messages, which interrupt the recipient's turn" },
  read_other_mailbox: { silent: 'deny', summary: 'read the mailbox of another agent' },
  take_other_mail: { silent: 'deny', summary: "take and acknowledge another agent's mail in its stead" },
  update_other_status: { silent: 'deny', summary: 'set the status of another agent' },
  read_log: { silent: 'deny', summary: 'read messages between other agents' },
  declare_checks: { silent: 'deny', summary: 'say by which commands the work it delegates is checked' },
  choose_judge: { silent: 'deny', summary: 'say who judges the work it delegates' },
  query_state: { silent: 'allow', summary: 'ask who is active and what the team is doing' },
  broadcast: { silent: 'allow', summary: 'send one message to everyone it may write to' },
} as const satisfies Record<string, { silent: Verdict; summary: string }>

export type Action = keyof typeof ACTIONS
export type Permissions = Readonly<Partial<Record<Action, Verdict>>>

/** Who decides where something is asked, and how many of them must agree (C9). */
export interface Approval {
  /** Names of people; absent: everyone who may decide at all. */
  readonly approvers?: readonly string[]
  readonly quorum: number
}

/** The answer to "may they?", with the rule that gave it. */
export interface Decision {
  readonly verdict: Verdict
  /** Where the answer comes from: a path in orc.yaml such as `rules.forbid[0]`, or `built-in: …`. */
  readonly rule: string
  /** The line of that path in orc.yaml, when the rules came from a file. */
  readonly line?: number
  /** Written for the agent that is refused: it follows `Message blocked: ` (S1.12). */
  readonly reason: string
  /** With `ask`: whose word it takes, where that is said. */
  readonly approval?: Approval
}

/** Agents by name; `*` stands for all. */
export type Who = readonly string[]

export interface Rule {
  readonly from: Who
  readonly to: Who
  readonly reason?: string
}

export interface RuleSet {
  readonly preset: Preset
  /** The agent every message passes through; given exactly when the preset is `hub`. */
  readonly hub?: string
  readonly allow: readonly Rule[]
  readonly forbid: readonly Rule[]
  readonly ask: readonly Rule[]
}

/** What the rules need to know of an agent. */
export interface AgentPolicy {
  readonly name: string
  readonly parent?: string
  /** Narrows whom it may write to; absent: as the rules say. */
  readonly send?: Who
  /** Narrows from whom it accepts; absent: as the rules say. */
  readonly receive?: Who
  readonly permissions: Permissions
}

/** All that decides, in one value; a Config is one. Names in it are canonical and unique whatever their case. */
export interface Policy {
  readonly agents: readonly AgentPolicy[]
  readonly rules: RuleSet
  /** For every agent that has no word of its own on the action. */
  readonly permissions: Permissions
  /** Line by path (`rules.forbid[0]`, `agents.Worker.send`), when the policy came from a file. */
  readonly lines: Readonly<Record<string, number>>
  /** The same for those that ask: who decides. */
  readonly approvals?: Readonly<Record<string, Approval>>
}

/** A token bucket: `burst` at once, refilled at `perMinute` (C18). */
export interface RatePolicy {
  readonly perMinute: number
  readonly burst: number
}

/** Two agents may take this many turns with each other within the window. */
export interface PingPongPolicy {
  readonly turns: number
  readonly withinMs: number
}
