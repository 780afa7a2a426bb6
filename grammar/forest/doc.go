// Package forest is a GFlowNet that builds parse trees bottom-up, and what it learns from: the E-step of GFlowNet-EM
// for grammars (Hu et al., "GFlowNet-EM for Learning Compositional Latent Variable Models", 2023).
//
// # Glossary
//
//	forest    an ordered list of trees over the words of a sentence: a state. An action joins two neighbours under a
//	          label; over shapes it has none.
//	shape     a tree without labels, which are summed out exactly. What its nodes weigh as each symbol is Inside.
//	gap       the place between two neighbouring words. A binary tree over n words has exactly one inner node for each of
//	          the n-1 gaps, the node whose left part ends there. So a node is named by its gap, whenever it was made, and
//	          equal forests are equal tensors.
//	top       the node of a tree that is part of no other one. Only tops can be joined or split.
//	slot      the place of a node in an order in which all can be computed: children first (Plan).
//	walk      steps through forests: so many back by P_B, then forward by P_F to whole trees. Its probabilities come with it.
//	route     where a walk has been: its forest, and the step at which each gap was opened and closed.
//	history   a trajectory that ends in a whole tree: the tree, and the step at which each gap was closed.
//	wake      walks from bare words up to whole trees.
//	dream     a tree drawn from the grammar, whose leaves may be symbols that were not expanded any more.
//	sleep     walks that take dreams apart; their histories, in forward order, are raised in probability.
//	move      a walk from a whole tree back and forth, a proposal of Metropolis and Hastings that is accepted or not.
//	rollout   the state of the loop that makes walks. A segment of it is so many passes.
//	reward    log R of a whole tree: its weight under the grammar, and that of a prior on shapes if there is one.
//	target    what rewards are made from: weights of derivations, and the prior with its coldness, one over its temperature.
//	line      all trees of all forests of an update, one after the other, so that no padding is computed.
//
// # Where things are
//
//	forest.go, env.go          forests; the environment of gfn
//	network.go, reading.go     the network, and what it makes of forests; the policy of gfn, simple and slow
//	embed.go, embed_loop.go    embeddings of trees, bottom-up: unrolled, and in loops for a GPU
//	walk.go, rollout.go        walks, and the loop that makes them; together.go makes two batches of walks at once
//	history.go, line.go        trajectories, all their trees on one line; score.go has what the network says of them
//	inside.go, labels.go       shapes: what labels add up to, and drawing them afterwards
//	sampler.go, segments.go    the same from the host, by typed programs, for learning (package induce) and parsing
//
// Letters of axes: B sentences, P histories, n words (or leaves), G = n-1 gaps, N labels, T steps, d the width of the
// network, M the greatest number of trees of a forest. Words are nodes 0 to n-1, the node at gap g is node n+g.
package forest
